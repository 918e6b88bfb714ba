// Where the time of a step went, from the events of its instructions.
#pragma once

#include "runtime/core/Session.h"

#include <array>
#include <vector>

namespace dlc::rt {

/// Seconds.
struct StepTimes {
  std::array<double, 3> phases{}; // forward (counts, too), backward, optimizer
  double communication = 0;       // with any collective in flight
  double exposed = 0;             // of that, waiting for collectives
};

class StepProfile {
public:
  explicit StepProfile(const artifact::Program &program);
  StepTimes measure(const std::vector<TraceEvent> &events) const;

private:
  std::vector<artifact::Phase> phases; // per instruction
  std::vector<artifact::Operation> operations;
};

} // namespace dlc::rt
