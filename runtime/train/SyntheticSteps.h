// Training steps on made-up data, with the time of each kind of work added up.
//
// Both input slots are filled once and used in turn. Collective; one compute thread.
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/train/StepProfile.h"

#include <map>
#include <string>

namespace dlc::rt {

class SyntheticSteps {
public:
  explicit SyntheticSteps(Session &session);

  /// Only measured steps enter the figures below.
  void run(int64_t steps, bool measured);

  /// Milliseconds a step of forward (0), backward (1), optimizer (2).
  double phase(size_t index) const { return perStep(times.phases[index]); }
  /// With an all-reduce in flight, and of that waiting for it.
  double communication() const { return perStep(times.communication); }
  double exposed() const { return perStep(times.exposed); }
  /// By the category of kernels.
  std::map<std::string, double> categories() const;
  /// Bytes that a rank sends in a step.
  double wireBytes() const;

private:
  double perStep(double seconds) const {
    return measuredSteps ? seconds * 1e3 / static_cast<double>(measuredSteps) : 0;
  }
  void add();
  bool isStart(uint32_t instruction) const;
  std::string categoryOf(uint32_t instruction) const;
  void fillInputs(unsigned slot);

  Session &session;
  const artifact::Program &program;
  StepProfile profile;
  std::vector<TraceEvent> events; // of one step
  StepTimes times;
  std::map<std::string, double> byCategory; // seconds
  int64_t step = 0, measuredSteps = 0;
};

} // namespace dlc::rt
