// Files that a run writes where it is told to.
#pragma once

#include "runtime/train/TrainOptions.h"

namespace dlc::rt {

/// What is wrong with where weights, log and trace shall go, in one line, before hours of training:
/// a folder that is not there, or a file that the run reads. Empty if nothing is.
std::string findWrongOutput(const TrainOptions &options);

} // namespace dlc::rt
