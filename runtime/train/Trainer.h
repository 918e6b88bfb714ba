// A training run: epochs of steps, validation, checkpoints, records.
//
// All ranks make the same decisions at the same steps, since they decide from reduced figures
// alone. Whatever ends the run, `last` in the run directory is a whole checkpoint of some step,
// from which
// --resume continues bit for bit. Collective; one compute thread.
#pragma once

#include "runtime/core/StopSignal.h"
#include "runtime/record/Console.h"
#include "runtime/record/RunLog.h"
#include "runtime/train/CheckpointWriter.h"
#include "runtime/train/Course.h"
#include "runtime/train/Recipe.h"
#include "runtime/train/RunDirectory.h"
#include "runtime/train/RunState.h"
#include "runtime/train/StepRunner.h"
#include "runtime/train/TrainingData.h"

#include <chrono>
#include <functional>

namespace dlc::rt {

class Trainer {
public:
  /// Reads data and weights or checkpoint, which says what `asked` leaves out. Throws Error for
  /// anything that does not fit. `signals` tells of requests to stop; from the run directory's
  /// creation on they are noted.
  Trainer(Session &session, const TrainOptions &asked, Console &console, StopSignal &signals);

  /// Trains to the end. Throws CollectiveError(Interrupted) after a signal and
  /// CollectiveError(Runtime) for a loss that is not finite.
  void run();

private:
  Recipe startRecipe();
  void requireEqualStart() const;
  void takeUpTotals();
  bool changesFigure(const RecipeChange &change) const;
  void forgetBest();
  void requireBest() const;
  int64_t stepsPerEpoch(int64_t samplesPerStep) const;
  void requireSavedEpoch() const;
  void setWorkers();
  int64_t scaling() const { return shape.ranks * shape.pieces; }
  void setCourse();
  void setSchedule();
  void setMonitor();
  std::string monitoredName() const;
  void announce() const;
  void openRecords();
  void runEpoch();
  void endEpoch(double seconds, int64_t steps);
  bool observeEpoch(double monitored);
  bool monitorsMetric() const;
  void writing(const std::function<void()> &write) const;
  StepOutcome runStep(BatchLoader &loader, double rate, std::optional<double> next);
  bool savesAfter(int64_t step) const;
  std::optional<double> nextRate() const;
  void recordStep(const StepOutcome &outcome, const Totals &step, double rate);
  std::string keptText() const;
  std::string nonFiniteAdvice() const;
  [[noreturn]] void failOnNonFinite(const Totals &step) const;
  [[noreturn]] void interrupt();
  [[noreturn]] void failOnData(const std::string &why, const std::string &fact) const;
  Totals validate();
  void noteState();
  void saveState(const std::string &path);
  void saveBetweenSteps();
  void requireSoundVariables();
  void requireFinite() const;
  void keepBest();
  void finish();

  Session &session;
  Console &console;
  const StopSignal &signals;
  artifact::TrainingT training;
  RunDirectory directory;
  const TrainOptions options; // complete
  TrainingData data;
  RunState state;
  std::vector<std::string> notes; // said at the start
  Recipe recipe;
  RankBatch shape;
  StepRunner steps;
  uint64_t sumBytes = 0;  // of the arena in which micro-batches are added up
  uint64_t keptBytes = 0; // of the data, on the device
  Course course;
  Totals totals; // of the epoch begun
  std::unique_ptr<Schedule> schedule;
  std::unique_ptr<RunLog> log;              // rank 0
  std::unique_ptr<CheckpointWriter> writer; // rank 0's, of --save-every
  bool toldOfSlowWriter = false;
  TimeShares extra;          // evaluation and checkpoints
  BatchLoader::Work loading; // for training
  int64_t checkedStep = -1;  // after which variables were last found sound
  int64_t stepsRun = 0;      // by this process
  bool endsEpochs = false;   // or a part of one: this process has
  std::chrono::steady_clock::time_point started;
};

} // namespace dlc::rt
