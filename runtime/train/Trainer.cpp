#include "runtime/train/Trainer.h"

#include "runtime/train/Arguments.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/CollectiveError.h"
#include "runtime/train/Evaluate.h"
#include "runtime/train/ProcessTime.h"
#include "runtime/train/Replicas.h"
#include "runtime/train/Report.h"
#include "runtime/train/RunConfiguration.h"

#include <cmath>
#include <filesystem>

namespace dlc::rt {

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

static artifact::TrainingT trainingOf(const Artifact &artifact) {
  artifact::TrainingT training;
  if (artifact->training())
    artifact->training()->UnPackTo(&training);
  return training;
}

static RankBatch rankBatch(const Session &session, const TrainOptions &options) {
  const Communicator &communicator = session.communicator();
  return {communicator.rank(), communicator.size(),
          static_cast<int64_t>(requireProgram(session.artifact(), "train").batch()),
          options.accumulate};
}

Trainer::Trainer(Session &session, const TrainOptions &options, Console &console,
                 const StopSignal &signals)
    : session(session), options(options), console(console), signals(signals),
      training(trainingOf(session.artifact())),
      directory(options, session.artifact()->model()->str(), session.communicator()),
      shape(rankBatch(session, options)), state(startState()),
      data(session.artifact(), options, state.seed), steps(session, state.seed, options.accumulate),
      totals(resultsOf(requireProgram(session.artifact(), "train"))) {
  if (options.resume)
    data.setStatistics(savedStatistics);
  else
    data.measureStatistics();
  if (shape.pieces > 1)
    session.accumulate("train");
  totals.setNumbers(state.totals);
  setLimits();
  if (shape.rank == 0)
    log = std::make_unique<RunLog>(directory.path(), options.log, state.step);
}

RunState Trainer::startState() {
  RunState fresh;
  fresh.seed = options.seed.value_or(0);
  fresh.ranks = shape.ranks;
  fresh.batch = shape.perRank();
  fresh.threads = session.threads();
  fresh.scheduleHash = std::to_string(session.artifact()->schedule_hash());
  if (!options.init.empty())
    loadWeights(session, options.init);
  if (!options.resume)
    return fresh;

  LoadedCheckpoint loaded = loadCheckpoint(session, directory.last());
  savedStatistics = std::move(loaded.statistics);
  RunState saved = std::move(loaded.state);
  if (options.seed && *options.seed != saved.seed)
    throw Error(ErrorCode::BadInput, "'" + directory.last() + "' was trained with seed " +
                                         std::to_string(saved.seed) +
                                         "; resume with that or leave "
                                         "--seed out");
  if (saved.ranks != fresh.ranks || saved.batch != fresh.batch || saved.threads != fresh.threads)
    console.line("note: resuming on " + workersText(fresh.ranks, fresh.batch, fresh.threads) +
                 " a run of " + workersText(saved.ranks, saved.batch, saved.threads) +
                 "; it will not be bit-exact");
  else if (saved.scheduleHash != fresh.scheduleHash)
    console.line("note: resuming with another artifact; it may not be bit-exact");
  saved.stepInEpoch = saved.samplePosition() / shape.global();
  saved.ranks = fresh.ranks;
  saved.batch = fresh.batch;
  saved.threads = fresh.threads;
  saved.scheduleHash = fresh.scheduleHash;
  return saved;
}

bool Trainer::monitorsMetric() const {
  return data.hasValidation() && !training.monitor.empty() && training.monitor != "loss";
}

void Trainer::setLimits() {
  auto samples = static_cast<int64_t>(data.trainingSamples().size());
  stepsPerEpoch = training.steps_per_epoch ? training.steps_per_epoch
                                           : (samples + shape.global() - 1) / shape.global();
  epochs = options.epochs.value_or(training.epochs ? training.epochs : 1);
  if (options.steps && !options.epochs)
    epochs = (*options.steps + stepsPerEpoch - 1) / stepsPerEpoch;
  totalSteps = epochs * stepsPerEpoch;
  if (options.steps)
    totalSteps = std::min(totalSteps, *options.steps);

  static const artifact::CallT none;
  const artifact::CallT &optimizer = training.optimizer ? *training.optimizer : none;
  double rate = options.learningRate.value_or(numberOf(optimizer, "lr", 1e-3));
  schedule = std::make_unique<Schedule>(
      training.schedule,
      options.scaleRate ? rate * static_cast<double>(shape.ranks * shape.pieces) : rate,
      stepsPerEpoch, totalSteps);
  for (size_t i = 0; i < schedule->plateaus.size() && i < state.plateaus.size(); ++i) {
    const Plateau &saved = state.plateaus[i];
    Plateau &plateau = schedule->plateaus[i];
    plateau = {plateau.factor, plateau.patience, saved.scale,
               saved.hasBest,  saved.best,       saved.badEpochs};
  }

  state.monitor.higherIsBetter = false;
  for (const ResultInfo &result : totals.results())
    if (monitorsMetric() && result.name == training.monitor && !result.isLoss)
      state.monitor.higherIsBetter = result.higherIsBetter;
  if (training.early_stop)
    state.monitor.patience = std::llround(numberOf(*training.early_stop, "patience", 10));
}

void Trainer::announce() const {
  console.line(openingText(shape, stepsPerEpoch));
  auto training = data.trainingSamples().size(), validation = data.validationSamples().size();
  console.line(std::to_string(training) + " training samples, " + std::to_string(validation) +
               " for validation; " + std::to_string(epochs) +
               (epochs == 1 ? " epoch; " : " epochs; ") + std::to_string(session.threads()) +
               (session.threads() == 1 ? " thread" : " threads") + " per rank, " +
               bytesText(session.arenaBytes()) + " planned; " + directory.path());
  console.line(pagesText(session.arenaPages()));
  if (shape.pieces > 1)
    console.line("sums over " + std::to_string(shape.pieces) + " batches a step take " +
                 bytesText(session.accumulate("train")) + " beside the plan");
  for (const std::string &notice : data.notices())
    console.line("note: " + notice);
  if (options.resume)
    console.line("resuming after step " + std::to_string(state.step) + " of " +
                 std::to_string(totalSteps));
}

void Trainer::run() {
  started = Clock::now();
  announce();
  if (shape.rank == 0)
    directory.writeConfiguration(runConfiguration(session, options, state));
  if (!options.trace.empty())
    steps.startTrace();
  while (state.step < totalSteps && !state.monitor.shouldStop())
    runEpoch();
  finish();
}

void Trainer::runEpoch() {
  Clock::time_point begin = Clock::now();
  int64_t stepsBefore = stepsRun;
  {
    auto epoch = static_cast<uint32_t>(state.epoch);
    BatchPlan plan = BatchPlan::training(data.trainingSamples(), shape, state.seed, epoch,
                                         options.shuffle, training.steps_per_epoch);
    Destinations inputs = destinationsOf(session, "train", data.trainingSet().inputs());
    BatchLoader loader(data.trainingSet(), plan, state.stepInEpoch * shape.pieces,
                       {true, state.seed, epoch}, inputs);
    while (state.stepInEpoch < stepsPerEpoch && state.step < totalSteps) {
      double rate = schedule->rate(state.step);
      StepOutcome outcome = steps.run(loader, state.step, rate, signals.received() != 0);
      ++state.step;
      ++state.stepInEpoch;
      if (++stepsRun == 1)
        console.line(firstStepText(secondsOfProcess()));
      Totals step(totals.results());
      step.add(outcome.totals);
      totals.add(outcome.totals);
      recordStep(outcome, step, rate);
      if (options.stopOnNan && !step.isFinite())
        failOnNonFinite(step.loss());
      if (outcome.stop)
        interrupt();
    }
  } // the loader stops here: validation uses the same input memory
  endEpoch(secondsSince(begin), stepsRun - stepsBefore);
}

void Trainer::recordStep(const StepOutcome &outcome, const Totals &step, double rate) {
  auto global = static_cast<double>(shape.global());
  double average = secondsSince(started) / static_cast<double>(stepsRun);
  console.progress({state.epoch + 1, epochs, state.stepInEpoch, stepsPerEpoch, totals.loss(),
                    global / outcome.seconds,
                    average * static_cast<double>(totalSteps - state.step)});
  if (!log)
    return;
  Record record = {{"event", "step"},
                   {"step", state.step},
                   {"epoch", state.epoch + 1},
                   {"loss", step.loss()},
                   {"lr", rate}};
  for (const auto &[name, value] : step.metrics())
    record[name] = value;
  record["samples_per_s"] = global / outcome.seconds;
  record["step_ms"] = outcome.seconds * 1e3;
  record["comm_ms"] = outcome.communication * 1e3;
  record["exposed_comm_ms"] = outcome.exposed * 1e3;
  record["data_wait_ms"] = outcome.dataWait * 1e3;
  auto samples = static_cast<int64_t>(data.trainingSamples().size());
  int64_t wrapped = state.samplePosition() - samples;
  if (!training.steps_per_epoch && wrapped > 0)
    record["wrapped_samples"] = wrapped;
  log->step(record);
}

std::string Trainer::keptText() const {
  return std::filesystem::exists(directory.last())
             ? "; the last checkpoint is '" + directory.last() + "'"
             : "";
}

void Trainer::failOnNonFinite(double loss) const {
  throw CollectiveError(
      ErrorCode::Runtime,
      "the loss is " + (std::isnan(loss) ? "nan" : figureText(loss)) + " in step " +
          std::to_string(state.step) + " (epoch " + std::to_string(state.epoch + 1) +
          "): lower the learning rate, or go on with --on-nan=continue" + keptText());
}

void Trainer::interrupt() {
  saveState(directory.last());
  if (log)
    log.reset();
  int signal = signals.received();
  std::string by = signal == SIGTERM   ? "SIGTERM"
                   : signal == SIGINT  ? "SIGINT"
                   : signal == SIGUSR1 ? "SIGUSR1"
                                       : "a signal";
  throw CollectiveError(ErrorCode::Interrupted,
                        "interrupted by " + by + " after step " + std::to_string(state.step) +
                            " of " + std::to_string(totalSteps) +
                            "; continue with --resume --run " + directory.path());
}

void Trainer::saveState(const std::string &path) {
  Clock::time_point begin = Clock::now();
  requireSoundVariables();
  state.totals = totals.numbers();
  state.plateaus = schedule->plateaus;
  if (shape.rank == 0)
    saveCheckpoint(session, data.statistics(), state, path);
  extra.checkpoint += secondsSince(begin);
}

/// What is saved is rank 0's: so nothing is, and what was saved stays, unless it is everyone's and
/// finite.
void Trainer::requireSoundVariables() {
  if (checkedStep == state.step)
    return;
  requireEqualReplicas(session, "after step " + std::to_string(state.step), keptText());
  requireFinite();
  checkedStep = state.step;
}

/// A library's ReLU turns what is not a number into 0, so that the loss may look sound while
/// weights are lost.
void Trainer::requireFinite() const {
  if (!options.stopOnNan)
    return;
  for (const VariableInfo &variable : variablesOf(session.artifact()))
    if (!session.isFinite(variable.name))
      throw CollectiveError(
          ErrorCode::Runtime,
          variable.name + " is not finite after step " + std::to_string(state.step) +
              ": lower the learning rate, or go on with --on-nan=continue" + keptText());
}

/// True if the epoch is the best so far. Only whole epochs move the schedule and the monitor, so
/// that a run cut by --steps resumes as if it had not been.
bool Trainer::observeEpoch(double monitored) {
  Monitor observed = state.monitor;
  bool isBest = observed.observe(monitored, state.epoch + 1);
  if (state.stepInEpoch < stepsPerEpoch)
    return isBest;
  state.monitor = observed;
  schedule->observe(monitored, observed.higherIsBetter);
  ++state.epoch;
  state.stepInEpoch = 0;
  totals.clear();
  return isBest;
}

void Trainer::endEpoch(double seconds, int64_t stepsDone) {
  Record record = {{"event", "epoch"},
                   {"step", state.step},
                   {"epoch", state.epoch + 1},
                   {"loss", totals.loss()},
                   {"lr", schedule->rate(state.step - 1)}};
  for (const auto &[name, value] : totals.metrics())
    record[name] = value;
  double monitored = totals.loss();
  if (data.hasValidation()) {
    Clock::time_point begin = Clock::now();
    Totals validation =
        evaluate(session, "eval", data.validationSet(), data.validationSamples(), state.seed);
    extra.evaluation += secondsSince(begin);
    record["val_loss"] = validation.loss();
    for (const auto &[name, value] : validation.metrics())
      record["val_" + name] = value;
    monitored = validation.value(training.monitor.empty() ? "loss" : training.monitor);
  }
  record["seconds"] = seconds;
  record["samples_per_s"] = static_cast<double>(stepsDone * shape.global()) / seconds;
  bool isBest = observeEpoch(monitored);
  console.line(epochText(record, epochs, isBest));
  if (isBest)
    saveState(directory.best());
  saveState(directory.last());
  if (log)
    log->epoch(record);
}

void Trainer::finish() {
  if (stepsRun == 0)
    console.line("nothing to do: the run has ended after step " + std::to_string(state.step) +
                 "; raise --epochs or --steps");
  else if (state.step < totalSteps)
    console.line("stopped early: no improvement for " + std::to_string(state.monitor.patience) +
                 " epochs");
  requireSoundVariables();
  if (!options.save.empty() && shape.rank == 0)
    saveWeights(session, data.statistics(), options.save);
  if (!options.trace.empty())
    steps.writeTrace(options.trace);
  TimeShares shares = steps.times();
  shares.evaluation = extra.evaluation;
  shares.checkpoint = extra.checkpoint;
  if (state.monitor.hasBest)
    console.line("best epoch " + std::to_string(state.monitor.bestEpoch) + ": " +
                 (data.hasValidation() ? "val_" : "") +
                 (monitorsMetric() ? training.monitor : "loss") + " " +
                 figureText(state.monitor.best) + " (" + directory.best() + ")");
  console.line(closingText(secondsSince(started), shares));
}

} // namespace dlc::rt
