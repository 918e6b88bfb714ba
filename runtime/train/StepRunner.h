// Runs single training steps and agrees with the other ranks on their outcome.
//
// One reduction a step carries sums, counts, the wish to stop and that a batch could not be loaded,
// so that all ranks see the same figures and act at the same step. Collective; one compute thread.
#pragma once

#include "runtime/data/BatchLoader.h"
#include "runtime/train/ChromeTrace.h"
#include "runtime/train/StepProfile.h"
#include "runtime/train/Totals.h"

#include <memory>

namespace dlc::rt {

/// Wall seconds of a run by what they were spent on.
struct TimeShares {
  double compute = 0, exposed = 0, dataWait = 0, evaluation = 0, checkpoint = 0;
};

struct StepOutcome {
  std::vector<Pair> totals; // over all ranks
  bool stop = false;        // some rank got a signal
  double seconds = 0;       // of the whole step, data wait included
  double communication = 0; // with an all-reduce in flight, on this rank, as all below
  double exposed = 0;
  double dataWait = 0;
};

class StepRunner {
public:
  /// A step takes `pieces` batches from the loader.
  StepRunner(Session &session, uint64_t seed, int64_t pieces);
  /// Keeps the events of the first steps for the trace file.
  void startTrace();
  void writeTrace(const std::string &path);

  /// Throws CollectiveError where some rank's batch cannot be loaded: the step counts for nothing,
  /// and the variables are to be left as they are.
  StepOutcome run(BatchLoader &loader, int64_t step, double rate, bool stopWanted);
  const TimeShares &times() const { return shares; }

private:
  void runPiece(BatchLoader &loader, int64_t step, MicroBatch part, StepOutcome &outcome);

  Session &session;
  const artifact::Program &program;
  StepProfile profile;
  uint64_t seed;
  int64_t pieces;
  TimeShares shares;
  std::vector<TraceEvent> events; // of one step
  std::unique_ptr<ChromeTrace> trace;
  std::string failure; // of loading
};

} // namespace dlc::rt
