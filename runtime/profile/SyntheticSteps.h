// Training steps on made-up data, and how long each of their instructions took.
//
// Both input slots are filled once and used in turn. Collective; one compute thread.
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/profile/MeasuredStep.h"
#include "runtime/train/StepProfile.h"

#include <vector>

namespace dlc::rt {

class SyntheticSteps {
public:
  explicit SyntheticSteps(Session &session);

  /// What is recorded of steps.
  enum class Record : uint8_t {
    Nothing,
    Times,  // those of instructions, which are not used
    Figures // those below
  };
  /// Has run them when it returns.
  void run(int64_t steps, Record record);

  /// Milliseconds a step of forward (0), backward (1), optimizer (2).
  double phase(size_t index) const { return perStep(times.phases[index]); }
  /// With an all-reduce in flight, and of that waiting for it.
  double communication() const { return perStep(times.communication); }
  double exposed() const { return perStep(times.exposed); }
  const std::vector<MeasuredStep> &measured() const { return steps; }
  /// From the process's start to the end of its first step.
  double firstStepSeconds() const { return firstStep; }
  /// Bytes that a rank sends in a step.
  double wireBytes() const;

private:
  double perStep(double seconds) const {
    return steps.empty() ? 0 : seconds * 1e3 / static_cast<double>(steps.size());
  }
  void add(int64_t begin, int64_t end);
  void fillInputs(unsigned slot);

  Session &session;
  const artifact::Program &program;
  StepProfile profile;
  std::vector<TraceEvent> events; // of one step
  StepTimes times;
  std::vector<MeasuredStep> steps;
  int64_t step = 0;
  double firstStep = 0;
};

} // namespace dlc::rt
