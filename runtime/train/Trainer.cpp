#include "runtime/train/Trainer.h"

#include "runtime/core/Accumulation.h"
#include "runtime/core/BytesText.h"
#include "runtime/data/Safetensors.h"
#include "runtime/record/ProcessTime.h"
#include "runtime/train/Arguments.h"
#include "runtime/train/Averages.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/CollectiveError.h"
#include "runtime/train/Evaluate.h"
#include "runtime/train/Replicas.h"
#include "runtime/train/Report.h"
#include "runtime/train/RunConfiguration.h"
#include "runtime/train/Signature.h"
#include "runtime/train/TiledEvaluation.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>

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

static RankBatch rankBatch(const Session &session, int64_t pieces) {
  const ControlPlane &control = session.control();
  const artifact::Program &program = requireProgram(session.artifact(), "train");
  return {control.rank(), control.size(), static_cast<int64_t>(program.batch()), pieces,
          pieces > 1 && countsAhead(program) ? 2 : 1};
}

Trainer::Trainer(Session &session, const TrainOptions &asked, Console &console, StopSignal &signals)
    : session(session), console(console), signals(signals),
      training(trainingOf(session.artifact())),
      directory(asked, session.artifact()->model()->str(), session.control()),
      options(completeOptions(asked, session.artifact(), directory.configuration())),
      data(session.artifact(), options), recipe(startRecipe()),
      shape(rankBatch(session, recipe.accumulate())), steps(session, recipe.seed(), shape),
      totals(requireProgram(session.artifact(), "train")) {
  requireEqualStart();
  data.split(recipe.seed());
  if (!options.resume)
    data.measureStatistics();
  if (shape.pieces > 1)
    sumBytes = session.accumulate("train");
  if (state.stepInEpoch > 0)
    takeUpTotals();
  setWorkers();
  setCourse();
  if (course.isOver(state) && !options.overrides.empty()) // which would be lost
    throw CollectiveError(ErrorCode::BadInput, nothingToDoText(course, options, state));
  setSchedule();
  setMonitor();
  keptBytes = session.keepArrays(data.holdArrays(session.artifact()));
  signals.note(); // what is begun here ends with a checkpoint
  directory.create();
  if (options.saveEvery && shape.rank == 0 && !course.isOver(state))
    writer = std::make_unique<CheckpointWriter>(session, data.record());
}

/// Loads variables and state of the run that is resumed, or the weights that a fresh run starts
/// from. Returns the recipe of that run.
Recipe Trainer::startRecipe() {
  Recipe recipe(session.artifact(), options);
  if (options.resume) {
    LoadedCheckpoint loaded = loadCheckpoint(session, directory.last());
    requireSameClasses(loaded.data.classes, "the run", data.trainingSet().classes(), "--data",
                       "give the folders that the run began with");
    data.setStatistics(loaded.data.statistics);
    state = std::move(loaded.state);
    std::vector<RecipeChange> changes =
        recipe.takeUp(state.recipe, options.overrides, directory.last());
    for (const RecipeChange &change : changes) {
      notes.push_back(differenceText(change) + " from step " + std::to_string(state.step + 1) +
                      " on (--override)");
      state.overrides.push_back({{"after_step", state.step},
                                 {"name", change.name},
                                 {"was", change.was},
                                 {"now", change.now}});
    }
    if (std::ranges::any_of(changes, [&](const auto &change) { return changesFigure(change); }))
      forgetBest();
    requireBest();
    for (const std::string &name : options.overrides)
      if (std::none_of(changes.begin(), changes.end(),
                       [&](const RecipeChange &change) { return change.name == name; }))
        notes.push_back("--override " + name + " changes nothing: " + name +
                        " is what it was; say with a flag, an artifact or data what it is to be");
  } else if (!options.init.empty()) {
    startFrom(session, options.init, options.initExcept);
  }
  if (!options.resume)
    startAverages(session);
  state.recipe = recipe.values();
  return recipe;
}

/// True if the epochs from now on are judged by another loss, or by other samples.
bool Trainer::changesFigure(const RecipeChange &change) const {
  if (change.name == "data")
    return options.validation.empty();
  if (change.name == "seed")
    return data.holdsBack();
  constexpr std::string_view deciding[] = {"monitor", "val", "data_block", "parameters"};
  return std::ranges::find(deciding, change.name) != std::end(deciding);
}

/// Figures of another kind cannot be compared with the best so far. What plateaus have done to the
/// rate stays.
void Trainer::forgetBest() {
  if (state.monitor.hasBest)
    notes.push_back("epochs are judged by another figure from now on: the best one so far, " +
                    std::to_string(state.monitor.bestEpoch) + ", counts no more, and '" +
                    directory.best() + "' will be another's; copy it to keep it");
  state.monitor = {};
  for (Plateau &plateau : state.plateaus)
    plateau = {plateau.factor, plateau.patience, plateau.scale, false, 0, 0};
}

/// Steps keep equal variables equal, and never make unequal ones equal.
void Trainer::requireEqualStart() const {
  std::string file = options.resume ? directory.last() : options.init;
  requireEqualReplicas(session, "before step " + std::to_string(state.step + 1),
                       file.empty()
                           ? "check that all hosts have the same processor and the same programs"
                           : "check that '" + file + "' is the same file on all hosts");
}

/// Restores the totals of the epoch begun. Another artifact may count other things.
void Trainer::takeUpTotals() {
  size_t wanted = totals.numbers().size();
  if (state.totals.size() != wanted)
    throw Error(ErrorCode::BadInput,
                "'" + directory.last() +
                    "' was saved within an epoch, and the length of its totals is " +
                    std::to_string(state.totals.size()) + "; model " +
                    session.artifact()->model()->str() + " wants " + std::to_string(wanted) +
                    ", a sum and a count of each loss and metric: give the model that it was "
                    "trained with, or start a new run from its weights with --init");
  totals.setNumbers(state.totals);
}

/// A run that never gets better again would end without it.
void Trainer::requireBest() const {
  if (!state.monitor.hasBest)
    return;
  auto refuse = [&](const std::string &why) {
    throw Error(ErrorCode::BadInput,
                "cannot resume: " + why + ", the checkpoint of the best epoch (" +
                    std::to_string(state.monitor.bestEpoch) + "); put it back, or copy '" +
                    directory.last() + "' there, to do without that epoch's weights");
  };
  std::error_code ignored;
  if (!std::filesystem::exists(directory.best(), ignored))
    refuse("there is no '" + directory.best() + "'");
  try {
    readSafetensors(directory.best());
  } catch (const Error &) {
    refuse("'" + directory.best() + "' cannot be read as weights");
  }
}

int64_t Trainer::stepsPerEpoch(int64_t samplesPerStep) const {
  auto samples = static_cast<int64_t>(data.trainingSamples().size());
  return training.steps_per_epoch ? training.steps_per_epoch
                                  : (samples + samplesPerStep - 1) / samplesPerStep;
}

/// An override may have changed what an epoch is.
void Trainer::requireSavedEpoch() const {
  int64_t wanted = stepsPerEpoch(state.batch * state.ranks);
  if (options.overrides.empty() && state.stepsPerEpoch != wanted)
    throw Error(ErrorCode::BadInput,
                "'" + directory.last() + "' is no checkpoint of this run: steps_per_epoch is " +
                    std::to_string(state.stepsPerEpoch) + ", wanted " + std::to_string(wanted) +
                    ", what the data give to batch " + std::to_string(state.batch) + " and world " +
                    std::to_string(state.ranks) + "; start a new run from its weights with --init");
}

/// Where sums depend on it, how many ranks share a host counts, too.
static std::string platformText(const Session &session) {
  std::string text = session.platform();
  if (int local = session.control().localSize(); !text.empty() && session.control().size() > 1)
    text += ", " + std::to_string(local) + (local == 1 ? " rank" : " ranks") + " a host";
  return text;
}

/// Ranks, batch and threads of this start, which may differ from those of a run that it resumes,
/// and the steps that an epoch has with them. Where less than one such step of an epoch is left,
/// the epoch begins anew.
void Trainer::setWorkers() {
  unsigned threads = session.threads();
  std::string schedule = std::to_string(session.artifact()->schedule_hash());
  std::string platform = platformText(session);
  int64_t perEpoch = stepsPerEpoch(shape.global());
  if (options.resume) {
    requireSavedEpoch();
    if (state.ranks != shape.ranks || state.batch != shape.perRank() || state.threads != threads)
      notes.push_back("resuming on " + workersText(shape.ranks, shape.perRank(), threads) +
                      " a run of " + workersText(state.ranks, state.batch, state.threads) +
                      "; it will not be bit-exact");
    else if (state.scheduleHash != schedule)
      notes.emplace_back("resuming with another artifact; it may not be bit-exact");
    else if (state.platform != platform && !state.platform.empty())
      notes.emplace_back("resuming on " + platform + " a run on " + state.platform +
                         "; it may not be bit-exact");
    int64_t inEpoch = std::min(state.samplePosition() / shape.global(), perEpoch);
    if (inEpoch != state.stepInEpoch || perEpoch != state.stepsPerEpoch)
      state.since = {state.step, state.epoch, inEpoch};
    state.stepInEpoch = inEpoch;
    if (inEpoch == 0) {
      state.told = true;
      totals.clear();
    }
  }
  state.stepsPerEpoch = perEpoch;
  state.ranks = shape.ranks;
  state.batch = shape.perRank();
  state.threads = threads;
  state.scheduleHash = schedule;
  state.platform = platform;
}

bool Trainer::monitorsMetric() const {
  return data.hasValidation() && !training.monitor.empty() && training.monitor != "loss";
}

void Trainer::setCourse() {
  int64_t share = recipe.scalesEpochs() ? scaling() : 1;
  course = courseOf(state.stepsPerEpoch, options, state, share);
  if (share > 1 && options.epochs)
    notes.push_back(std::to_string(*options.epochs) + " epochs / " + std::to_string(share) + " = " +
                    std::to_string(course.epochsOf(*options.epochs)) + " (--scale-epochs)");
}

void Trainer::setSchedule() {
  int64_t length = recipe.scheduleSteps(course);
  if (recipe.countsToAnEnd()) {
    std::string how;
    if (length < course.end)
      how = " and stays there; --override length lets it count to the new end";
    else if (!options.resume && !options.epochs)
      how = ", as --steps says; --epochs beside it lets it count to their end";
    notes.push_back("the schedule counts to step " + std::to_string(length) + how);
  }
  double scale = recipe.scalesRate() ? static_cast<double>(scaling()) : 1;
  if (scale > 1)
    notes.push_back("learning rate " + figureText(recipe.learningRate()) + " x " +
                    std::to_string(scaling()) + " = " + figureText(recipe.learningRate() * scale) +
                    " (--scale-lr=linear)");
  schedule = std::make_unique<Schedule>(training.schedule, recipe.learningRate() * scale,
                                        course.stepsPerEpoch, length);
  for (size_t i = 0; i < schedule->plateaus.size() && i < state.plateaus.size(); ++i) {
    const Plateau &saved = state.plateaus[i];
    Plateau &plateau = schedule->plateaus[i];
    plateau = {plateau.factor, plateau.patience, saved.scale,
               saved.hasBest,  saved.best,       saved.badEpochs};
  }
}

void Trainer::setMonitor() {
  state.monitor.higherIsBetter = monitorsMetric() && training.goal == artifact::Goal::Max;
  if (training.early_stop)
    state.monitor.patience = std::llround(numberOf(*training.early_stop, "patience", 10));
}

/// The figure that tells which epoch is best.
std::string Trainer::monitoredName() const {
  return (data.hasValidation() ? "val_" : "") + (monitorsMetric() ? training.monitor : "loss");
}

void Trainer::announce() const {
  console.line(openingText(shape, course.stepsPerEpoch));
  bool onGpu = session.artifact().isForGpu();
  unsigned threads = onGpu ? session.loaderThreads() : session.threads();
  console.line(std::to_string(data.trainingSamples().size()) + " training samples, " +
               std::to_string(data.validationSamples().size()) + " for validation; " +
               std::to_string(course.epochs) + (course.epochs == 1 ? " epoch; " : " epochs; ") +
               std::to_string(threads) + (onGpu ? " loader" : "") +
               (threads == 1 ? " thread" : " threads") + " per rank, " +
               bytesText(session.arenaBytes()) + " planned; " + directory.path());
  if (!onGpu)
    console.line(pagesText(session.arenaPages()));
  if (shape.pieces > 1)
    console.line("sums over " + std::to_string(shape.pieces) + " batches a step take " +
                 bytesText(sumBytes) + " of the planned memory");
  if (keptBytes > 0)
    console.line("the GPU keeps data in up to " + bytesText(keptBytes) +
                 " beside what is planned and gathers batches of them");
  if (shape.rounds > 1)
    console.line("what the loss counts over all batches of a step is counted first: batches are "
                 "loaded twice");
  if (writer)
    console.line("the copy for --save-every takes " + bytesText(writer->bytes()) +
                 " of rank 0's memory beside what is planned");
  console.line(monitorText(state.monitor, data.hasValidation(), training.monitor));
  for (const std::string &notice : data.notices())
    console.line("note: " + notice);
  for (const std::string &note : notes)
    console.line("note: " + note);
  if (options.resume && !course.isOver(state))
    console.line("resuming after step " + std::to_string(state.step) + " of " +
                 std::to_string(course.totalSteps));
}

void Trainer::run() {
  started = Clock::now();
  announce();
  if (course.isOver(state))
    console.line(nothingToDoText(course, options, state));
  else if (shape.rank == 0)
    openRecords();
  if (!options.trace.empty())
    steps.startTrace();
  while (!course.isOver(state))
    runEpoch();
  finish();
}

void Trainer::openRecords() {
  writing([&] {
    directory.writeConfiguration(runConfiguration(session.artifact(), options, recipe, state));
    log = std::make_unique<RunLog>(directory.path(), options.log, state.step, state.epoch);
    for (const std::string &note : log->notes())
      console.line("note: " + note);
    for (const nlohmann::json &change : state.overrides)
      if (change.at("after_step") == state.step)
        log->overridden({{"event", "override"},
                         {"step", state.step},
                         {"name", change.at("name")},
                         {"was", change.at("was")},
                         {"now", change.at("now")}});
  });
}

void Trainer::runEpoch() {
  Clock::time_point begin = Clock::now();
  int64_t stepsBefore = stepsRun;
  {
    auto epoch = static_cast<uint32_t>(state.epoch);
    BatchPlan plan = BatchPlan::training(data.trainingSamples(), shape, recipe.seed(), epoch,
                                         recipe.shuffles(), training.steps_per_epoch);
    Destinations inputs = destinationsOf(session, "train", data.trainingSet().inputs());
    BatchLoader loader(data.trainingSet(), plan, state.stepInEpoch * shape.pieces * shape.rounds,
                       {true, recipe.seed(), epoch}, inputs, session.loaderThreads());
    bool stops = false;
    while (state.stepInEpoch < course.stepsPerEpoch && state.step < course.totalSteps) {
      double rate = schedule->rate(state.place(course.stepsPerEpoch));
      StepOutcome outcome = runStep(loader, rate, stops ? std::nullopt : nextRate());
      stops |= outcome.stop;
      if (!outcome.failure.empty()) {
        if (stepsRun > 0)
          saveState(directory.last());
        failOnData(outcome.failure, "data");
      }
      ++state.step;
      ++state.stepInEpoch;
      state.told = false;
      if (++stepsRun == 1)
        console.line(firstStepText(secondsOfProcess(), session.startPhases()));
      Totals step = totals;
      step.clear();
      step.add(outcome.totals);
      totals.add(outcome.totals);
      recordStep(outcome, step, rate);
      directory.keep();
      if (recipe.stopsOnNan() && !step.isFinite())
        failOnNonFinite(step);
      if (stops && !steps.isAhead())
        interrupt();
      if (savesAfter(state.step))
        saveBetweenSteps();
    }
    loading.seconds += loader.work().seconds;
    loading.samples += loader.work().samples;
  } // the loader stops here: validation uses the same input memory
  endEpoch(secondsSince(begin), stepsRun - stepsBefore);
}

/// What ends a step says what is kept, too.
StepOutcome Trainer::runStep(BatchLoader &loader, double rate, std::optional<double> next) {
  try {
    return steps.run(loader, state.step, rate, next, signals.received() != 0);
  } catch (const CollectiveError &) {
    throw;
  } catch (const Error &error) {
    std::string kept = keptText();
    bool isTold = std::string_view(error.what()).ends_with(kept); // a peer has said it
    throw Error(error.code, error.what() + (isTold ? "" : kept));
  }
}

bool Trainer::savesAfter(int64_t step) const {
  return options.saveEvery && step % *options.saveEvery == 0;
}

/// The learning rate of the step behind the present one, unless something else comes between.
std::optional<double> Trainer::nextRate() const {
  int64_t next = state.step + 1;
  if (state.stepInEpoch + 1 == course.stepsPerEpoch || next == course.totalSteps ||
      savesAfter(next))
    return std::nullopt;
  return schedule->rate(state.place(course.stepsPerEpoch) + 1);
}

void Trainer::recordStep(const StepOutcome &outcome, const Totals &step, double rate) {
  auto global = static_cast<double>(shape.global());
  double average = secondsSince(started) / static_cast<double>(stepsRun);
  console.progress({state.epoch + 1, course.epochs, state.stepInEpoch, course.stepsPerEpoch,
                    totals.loss(), global / outcome.seconds,
                    average * static_cast<double>(course.totalSteps - state.step)});
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
  writing([&] { log->step(record); });
}

/// Calls `write`; its error says how to go on, too, where there is a checkpoint.
void Trainer::writing(const std::function<void()> &write) const {
  try {
    write();
  } catch (const Error &error) {
    std::error_code ignored;
    if (!std::filesystem::exists(directory.last(), ignored))
      throw;
    throw Error(error.code, std::string(error.what()) +
                                "; once it can be written, continue with --resume --run " +
                                directory.path());
  }
}

std::string Trainer::keptText() const {
  try {
    if (writer)
      writer->wait();
  } catch (const Error &problem) { // the checkpoint before is kept
    console.line("note: " + std::string(problem.what()));
  }
  std::error_code ignored;
  return std::filesystem::exists(directory.last(), ignored)
             ? "; the last checkpoint is '" + directory.last() + "'"
             : "";
}

/// What to do about numbers that are not finite.
std::string Trainer::nonFiniteAdvice() const {
  std::string kept = keptText();
  return "lower the learning rate, or go on with --on-nan=continue" + kept +
         (kept.empty() ? "" : " (to --resume it with other ones, add --override lr,on-nan)");
}

void Trainer::failOnNonFinite(const Totals &step) const {
  std::string where =
      " in step " + std::to_string(state.step) + " (epoch " + std::to_string(state.epoch + 1) + ")";
  if (step.countsNothing())
    throw CollectiveError(ErrorCode::Runtime,
                          "the loss is a mean of nothing" + where +
                              ", its count is 0: see to it that every batch has something that the "
                              "loss counts" +
                              keptText());
  double loss = step.loss();
  throw CollectiveError(ErrorCode::Runtime, "the loss is " +
                                                (std::isnan(loss) ? "nan" : figureText(loss)) +
                                                where + ": " + nonFiniteAdvice());
}

void Trainer::interrupt() {
  saveState(directory.last());
  std::string by = signals.received() ? signals.name() : "a signal";
  throw CollectiveError(ErrorCode::Interrupted,
                        "interrupted by " + by + " after step " + std::to_string(state.step) +
                            " of " + std::to_string(course.totalSteps) +
                            "; continue with --resume --run " + directory.path());
}

/// The steps before are saved already. Mended data have another hash, so the message tells to
/// override `fact`, the entry of the recipe that holds it.
void Trainer::failOnData(const std::string &why, const std::string &fact) const {
  std::string further;
  if (state.step > 0)
    further =
        "; what the steps up to " + std::to_string(state.step) +
        " have trained is saved: once the data are mended, continue with --resume --override " +
        fact + " --run " + directory.path();
  throw CollectiveError(ErrorCode::BadInput, why + further);
}

void Trainer::noteState() {
  state.totals = state.stepInEpoch > 0 ? totals.numbers() : std::vector<double>();
  state.plateaus = schedule->plateaus;
}

void Trainer::saveState(const std::string &path) {
  Clock::time_point begin = Clock::now();
  requireSoundVariables();
  noteState();
  writing([&] {
    if (writer)
      writer->wait();
    if (log)
      log->flush(); // first: what a checkpoint's steps have logged is on disk
    if (shape.rank == 0)
      saveCheckpoint(session, data.record(), state, /*averaged=*/path == directory.best(), path);
  });
  extra.checkpoint += secondsSince(begin);
}

/// Training waits for the copy alone. At the end of an epoch there is a checkpoint anyway. A disk
/// that is slower than the steps leaves out some.
void Trainer::saveBetweenSteps() {
  if (state.stepInEpoch == course.stepsPerEpoch || state.step == course.totalSteps)
    return;
  Clock::time_point begin = Clock::now();
  requireSoundVariables();
  noteState();
  writing([&] {
    if (log)
      log->flush();
    if (writer && !writer->isBusy())
      writer->begin(state, directory.last());
    else if (writer && !std::exchange(toldOfSlowWriter, true))
      console.line("note: no checkpoint after step " + std::to_string(state.step) +
                   ", since the one before is still being written; a larger --save-every would do");
  });
  extra.checkpoint += secondsSince(begin);
}

/// A checkpoint holds rank 0's variables. It is written only if all ranks have the same ones and
/// they are finite; otherwise this throws, and the old checkpoint stays.
void Trainer::requireSoundVariables() {
  if (checkedStep == state.step)
    return;
  try {
    requireEqualReplicas(session, "after step " + std::to_string(state.step),
                         "check the hosts' memory, or report the artifact as wrong");
  } catch (const CollectiveError &error) { // only now: keptText waits for a file being written
    throw CollectiveError(error.code, error.what() + keptText());
  }
  requireFinite();
  checkedStep = state.step;
}

/// A library's ReLU turns what is not a number into 0, so that the loss may look sound while
/// weights are lost.
void Trainer::requireFinite() const {
  if (!recipe.stopsOnNan())
    return;
  for (const VariableInfo &variable : variablesOf(session.artifact()))
    if (!session.isFinite(variable.name))
      throw CollectiveError(ErrorCode::Runtime, variable.name + " is not finite after step " +
                                                    std::to_string(state.step) + ": " +
                                                    nonFiniteAdvice());
}

/// True if the epoch, which is whole, is the best so far.
bool Trainer::observeEpoch(double monitored) {
  bool isBest = state.monitor.observe(monitored, state.epoch + 1);
  schedule->observe(monitored, state.monitor.higherIsBetter);
  ++state.epoch;
  state.stepInEpoch = 0;
  totals.clear();
  return isBest;
}

/// Saves what the epoch has trained before: validation may take long, and fail.
Totals Trainer::validate() {
  saveState(directory.last());
  Clock::time_point begin = Clock::now();
  try {
    AveragesInPlace averages(session);
    Totals validation =
        evaluateAnySize(session, data.validationSet(), data.validationSamples(), recipe.seed());
    extra.evaluation += secondsSince(begin);
    return validation;
  } catch (const CollectiveError &error) {
    if (error.code != ErrorCode::BadInput)
      throw CollectiveError(error.code, error.what() + keptText());
    failOnData(error.what(), options.validation.empty() ? "data" : "val");
  }
}

/// A part of an epoch is validated and told of, but compared with nothing: a run that --steps has
/// cut resumes as if it had not been.
void Trainer::endEpoch(double seconds, int64_t stepsDone) {
  Record record = {{"event", "epoch"},
                   {"step", state.step},
                   {"epoch", state.epoch + 1},
                   {"loss", totals.loss()},
                   {"lr", schedule->rate(state.place(course.stepsPerEpoch) - 1)}};
  for (const auto &[name, value] : totals.metrics())
    record[name] = value;
  for (const VariableInfo &variable : variablesOf(session.artifact()))
    for (const char *figure : {"loss_scale", "skipped_steps"}) // of f16
      if (variable.name == std::string("optimizer.") + figure)
        record[figure] = session.read(variable.name).front();
  double monitored = totals.loss();
  if (data.hasValidation()) {
    Totals validation = validate();
    record["val_loss"] = validation.loss();
    for (const auto &[name, value] : validation.metrics())
      record["val_" + name] = value;
    monitored = validation.value(training.monitor.empty() ? "loss" : training.monitor);
  }
  record["seconds"] = seconds;
  record["samples_per_s"] = static_cast<double>(stepsDone * shape.global()) / seconds;
  bool part = state.stepInEpoch < course.stepsPerEpoch;
  record["part"] = part;
  bool isBest = !part && observeEpoch(monitored);
  state.told = endsEpochs = true;
  console.line(epochText(record, course.epochs, isBest));
  if (log)
    writing([&] { log->epoch(record); });
  if (isBest)
    saveState(directory.best());
  saveState(directory.last());
}

void Trainer::keepBest() {
  if (state.monitor.hasBest) {
    console.line("best epoch " + std::to_string(state.monitor.bestEpoch) + ": " + monitoredName() +
                 " " + figureText(state.monitor.best) + " (" + directory.best() + ")");
  } else if (endsEpochs) {
    saveState(directory.best());
    console.line(
        (state.epoch == 0 ? "no epoch is whole" : "no epoch's " + monitoredName() + " is finite") +
        ", so none is best: " + directory.best() + " holds what " + directory.last() + " does");
  }
}

void Trainer::finish() {
  if (state.monitor.shouldStop() && stepsRun > 0)
    console.line("stopped early: no improvement for " + std::to_string(state.monitor.patience) +
                 " epochs");
  requireSoundVariables();
  keepBest();
  if (!options.save.empty() && shape.rank == 0)
    saveWeights(session, data.record(), options.save);
  if (!options.trace.empty())
    steps.writeTrace(options.trace);
  TimeShares shares = steps.times();
  shares.evaluation = extra.evaluation;
  shares.checkpoint = extra.checkpoint;
  if (loading.samples > 0)
    console.line(loadingText(loading, session.loaderThreads()));
  console.line(closingText(secondsSince(started), shares));
  std::vector<double> processor = {processorTime().user, processorTime().system};
  session.control().sum(processor, "sum of the ranks' processor times");
  console.line(timesText({processor[0], processor[1]}, shape.ranks, secondsOfProcess()));
}

} // namespace dlc::rt
