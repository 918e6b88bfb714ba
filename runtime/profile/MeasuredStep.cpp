#include "runtime/profile/MeasuredStep.h"

#include <algorithm>

namespace dlc::rt {

MeasuredStep middleOf(std::vector<MeasuredStep> steps) {
  std::ranges::sort(steps, {}, &MeasuredStep::seconds);
  size_t quarter = steps.size() / 4, middle = steps.size() - 2 * quarter;
  double share = 1.0 / static_cast<double>(middle);
  MeasuredStep mean{0, std::vector<double>(steps.front().instructions.size())};
  for (size_t i = quarter; i < quarter + middle; ++i) {
    mean.seconds += steps[i].seconds * share;
    for (size_t j = 0; j < mean.instructions.size(); ++j)
      mean.instructions[j] += steps[i].instructions[j] * share;
  }
  return mean;
}

MeasuredStep bestOf(const std::vector<MeasuredStep> &steps) {
  MeasuredStep best = steps.front();
  for (const MeasuredStep &step : steps) {
    best.seconds = std::min(best.seconds, step.seconds);
    for (size_t i = 0; i < best.instructions.size(); ++i)
      best.instructions[i] = std::min(best.instructions[i], step.instructions[i]);
  }
  return best;
}

} // namespace dlc::rt
