// How long a step and each of its instructions took.
#pragma once

#include <vector>

namespace dlc::rt {

/// Seconds of one step and of its instructions; of the start of a collective what it held up.
struct MeasuredStep {
  double seconds = 0;
  std::vector<double> instructions;
};

/// The mean over those of one or more steps that are neither among the quickest nor the slowest
/// quarter.
MeasuredStep middleOf(std::vector<MeasuredStep> steps);

/// The least value of each figure over one or more steps, since other load only adds to it.
MeasuredStep bestOf(const std::vector<MeasuredStep> &steps);

} // namespace dlc::rt
