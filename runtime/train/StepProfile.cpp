#include "runtime/train/StepProfile.h"

#include <algorithm>

namespace dlc::rt {

StepProfile::StepProfile(const artifact::Program &program) {
  if (!program.instructions())
    return;
  for (const artifact::Instruction *instruction : *program.instructions()) {
    artifact::Phase phase = instruction->phase();
    phases.push_back(phase == artifact::Phase::Count ? artifact::Phase::Forward : phase);
    operations.push_back(instruction->operation_type());
  }
}

StepTimes StepProfile::measure(const std::vector<TraceEvent> &events) const {
  StepTimes times;
  std::vector<std::pair<int64_t, int64_t>> flights;
  for (const TraceEvent &event : events) {
    double seconds = static_cast<double>(event.end - event.begin) * 1e-9;
    auto phase = static_cast<size_t>(phases[event.instruction]);
    if (operations[event.instruction] == artifact::Operation::CollectiveStart)
      flights.emplace_back(event.begin, event.end);
    else if (operations[event.instruction] == artifact::Operation::CollectiveWait)
      times.exposed += seconds;
    else if (phase < times.phases.size())
      times.phases[phase] += seconds;
  }
  std::sort(flights.begin(), flights.end());
  int64_t covered = 0; // until here, flights may overlap
  for (auto [begin, end] : flights) {
    times.communication +=
        static_cast<double>(std::max(end, covered) - std::max(begin, covered)) * 1e-9;
    covered = std::max(covered, end);
  }
  return times;
}

} // namespace dlc::rt
