// Runs single training steps and agrees with the other ranks on their outcome.
//
// One reduction a step carries sums, counts and the wish to stop, so that all ranks see the same
// figures and act at the same step. Another one comes before the update, which cannot be taken
// back: that every rank has its batches. Where the device runs by itself, the next step is started
// before this one's figures are read, so that it need not wait for the host. Collective; one
// compute thread.
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
  /// `nextRate` is the next step's learning rate if it may be started before this returns.
  StepOutcome run(BatchLoader &loader, int64_t step, double rate, std::optional<double> nextRate,
                  bool stopWanted);
  /// A step has been started whose outcome is to come: variables are not those of the last outcome.
  bool isAhead() const { return started.has_value(); }
  const TimeShares &times() const { return shares; }

private:
  /// A step whose last batch is under way. Times in nanoseconds.
  struct Started {
    StepOutcome outcome;
    unsigned slot = 0;                // of the last batch
    int64_t begin = 0, dataTaken = 0; // start, and when it had the first of its batches
  };

  std::optional<BatchLoader::Loaded> load(BatchLoader &loader, int64_t step, MicroBatch part,
                                          StepOutcome &outcome);
  Started start(BatchLoader &loader, int64_t step, double rate);
  void takeResults(BatchLoader &loader, Started &of, MicroBatch part);
  void finish(Started &of, int64_t step, bool stopWanted);

  Session &session;
  const artifact::Program &program;
  StepProfile profile;
  uint64_t seed;
  std::vector<MicroBatch> parts; // of a step, in order
  TimeShares shares;
  std::vector<TraceEvent> events; // of one step
  std::optional<Started> started; // ahead
  int64_t lastEnd = 0;
  std::unique_ptr<ChromeTrace> trace;
};

} // namespace dlc::rt
