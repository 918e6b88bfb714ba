// Losses and metrics of images larger than the eval program: each is evaluated tile by tile, and of
// every tile counts what the program computes as of the whole image, so that each pixel counts
// once.
//
// Collective; one compute thread.
#pragma once

#include "runtime/core/Session.h"
#include "runtime/data/Dataset.h"
#include "runtime/train/Totals.h"

namespace dlc::rt {

/// What an evaluation takes: images of any size, if the program can be tiled.
std::vector<InputSpec> evaluationInputs(const Artifact &artifact);

/// Sums over all ranks, as evaluate() gives for images of the program's size. Throws
/// CollectiveError alike on all ranks.
Totals evaluateTiles(Session &session, const Dataset &dataset, const std::vector<int64_t> &samples);

} // namespace dlc::rt
