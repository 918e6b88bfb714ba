// A trace of the first steps for chrome://tracing and Perfetto: one process per rank.
//
// Steps, their phases, kernels and waits are lanes of complete events, none of which overlaps
// another of its lane, in the order of time; all-reduces may overlap each other and are
// asynchronous events, from start to completion. The category of an event is its phase: forward,
// backward, update, communication or data. Clocks are aligned at a barrier. One thread at a time;
// write() is collective.
#pragma once

#include "runtime/core/Session.h"

#include <string>
#include <vector>

namespace dlc::rt {

class ChromeTrace {
public:
  /// Collective: all ranks meet here to set their clocks.
  ChromeTrace(const artifact::Artifact &root, const artifact::Program &program,
              ControlPlane &control);

  /// Steps beyond this are not kept.
  static constexpr size_t maximumSteps = 32;

  /// One step: its instructions, and when it waited for data (steady-clock nanoseconds).
  void add(uint64_t step, const std::vector<TraceEvent> &events, int64_t dataWaitBegin,
           int64_t dataWaitEnd);
  /// Gathers all ranks' events; rank 0 writes the file. Throws Error(Runtime).
  void write(const std::string &path);

private:
  struct Step {
    uint64_t step;
    int64_t dataWaitBegin, dataWaitEnd;
    std::vector<TraceEvent> events;
  };
  std::string render() const;

  const artifact::Artifact &root;
  const artifact::Program &program;
  ControlPlane &control;
  int64_t origin;
  std::vector<Step> steps;
};

/// Steady-clock nanoseconds, as TraceEvent counts them.
int64_t nowNanoseconds();

} // namespace dlc::rt
