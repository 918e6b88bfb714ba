// Runs single training steps and agrees with the other ranks on their outcome.
//
// One reduction a step carries sums, counts and the wish to stop, so that all ranks see the same
// figures and act at the same step. Another one comes before the update, which cannot be taken
// back: that every rank has its batches. Collective; one compute thread.
#pragma once

#include "runtime/data/BatchLoader.h"
#include "runtime/record/ChromeTrace.h"
#include "runtime/train/StepProfile.h"
#include "runtime/train/Totals.h"

#include <memory>
#include <optional>

namespace dlc::rt {

/// Wall seconds of a run by what they were spent on.
struct TimeShares {
  double compute = 0, exposed = 0, dataWait = 0, evaluation = 0, checkpoint = 0;
};

struct StepOutcome {
  std::string failure;      // why some rank lacks a batch, if one does; the same on all ranks
  std::vector<Pair> totals; // over all ranks
  bool stop = false;        // some rank got a signal
  double seconds = 0;       // of the whole step, data wait included
  double communication = 0; // with an all-reduce in flight, on this rank, as all below
  double exposed = 0;
  double dataWait = 0;
};

class StepRunner {
public:
  /// A step takes as many batches from the loader as the shape has pieces, in each round.
  StepRunner(Session &session, uint64_t seed, const RankBatch &shape);
  /// Keeps the events of the first steps for the trace file.
  void startTrace();
  void writeTrace(const std::string &path);

  /// Where some rank lacks a batch, the outcome is its failure alone: no variable has changed.
  StepOutcome run(BatchLoader &loader, int64_t step, double rate, bool stopWanted);
  const TimeShares &times() const { return shares; }

private:
  std::optional<BatchLoader::Loaded> load(BatchLoader &loader, int64_t step, MicroBatch part,
                                          StepOutcome &outcome);
  bool runPiece(BatchLoader &loader, int64_t step, MicroBatch part, StepOutcome &outcome);

  Session &session;
  const artifact::Program &program;
  StepProfile profile;
  uint64_t seed;
  std::vector<MicroBatch> parts; // of a step, in order
  TimeShares shares;
  std::vector<TraceEvent> events; // of one step
  std::unique_ptr<ChromeTrace> trace;
};

} // namespace dlc::rt
