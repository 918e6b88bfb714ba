// A training run: epochs of steps, validation, checkpoints, records.
//
// All ranks make the same decisions at the same steps, since they decide from reduced figures
// alone. Whatever ends the run, `last` in the run directory is a whole checkpoint of some step,
// from which
// --resume continues bit for bit. Collective; one compute thread.
#pragma once

#include "runtime/train/Console.h"
#include "runtime/train/RunDirectory.h"
#include "runtime/train/RunLog.h"
#include "runtime/train/RunState.h"
#include "runtime/train/StepRunner.h"
#include "runtime/train/StopSignal.h"
#include "runtime/train/TrainingData.h"

#include <chrono>

namespace dlc::rt {

class Trainer {
public:
  /// Reads data and weights or checkpoint. Throws Error for anything that does not fit. `signals`
  /// tells of requests to stop.
  Trainer(Session &session, const TrainOptions &options, Console &console,
          const StopSignal &signals);

  /// Trains to the end. Throws CollectiveError(Interrupted) after a signal and
  /// CollectiveError(Runtime) for a loss that is not finite.
  void run();

private:
  RunState startState();
  void setLimits();
  void announce() const;
  void runEpoch();
  void endEpoch(double seconds, int64_t steps);
  bool observeEpoch(double monitored);
  bool monitorsMetric() const;
  void recordStep(const StepOutcome &outcome, const Totals &step, double rate);
  std::string keptText() const;
  [[noreturn]] void failOnNonFinite(double loss) const;
  [[noreturn]] void interrupt();
  void saveState(const std::string &path);
  void requireSoundVariables();
  void requireFinite() const;
  void finish();

  Session &session;
  const TrainOptions &options;
  Console &console;
  const StopSignal &signals;
  artifact::TrainingT training;
  RunDirectory directory;
  RankBatch shape;
  Dataset::Statistics savedStatistics; // of the checkpoint resumed from
  RunState state;
  TrainingData data;
  StepRunner steps;
  Totals totals; // of the epoch begun
  std::unique_ptr<Schedule> schedule;
  std::unique_ptr<RunLog> log; // rank 0
  TimeShares extra;            // evaluation and checkpoints
  int64_t checkedStep = -1;    // after which variables were last found sound
  int64_t stepsPerEpoch = 0, epochs = 0, totalSteps = 0;
  int64_t stepsRun = 0; // by this process
  std::chrono::steady_clock::time_point started;
};

} // namespace dlc::rt
