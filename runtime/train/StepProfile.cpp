#include "runtime/train/StepProfile.h"

namespace dlc::rt {

StepProfile::StepProfile(const artifact::Program &program) {
  if (!program.instructions())
    return;
  for (const artifact::Instruction *instruction : *program.instructions()) {
    phases.push_back(instruction->phase());
    waits.push_back(instruction->operation_type() == artifact::Operation::CollectiveWait);
  }
}

StepTimes StepProfile::measure(const std::vector<TraceEvent> &events) const {
  StepTimes times;
  for (const TraceEvent &event : events) {
    double seconds = static_cast<double>(event.end - event.begin) * 1e-9;
    auto phase = static_cast<size_t>(phases[event.instruction]);
    if (waits[event.instruction])
      times.exposed += seconds;
    else if (phase < times.phases.size())
      times.phases[phase] += seconds;
  }
  return times;
}

} // namespace dlc::rt
