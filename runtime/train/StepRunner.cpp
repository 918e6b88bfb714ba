#include "runtime/train/StepRunner.h"

#include "runtime/artifact/Error.h"
#include "runtime/train/CollectiveError.h"
#include "runtime/train/Evaluate.h"
#include "runtime/train/Signature.h"

#include <algorithm>
#include <utility>

namespace dlc::rt {

StepRunner::StepRunner(Session &session, uint64_t seed, const RankBatch &shape)
    : session(session), program(requireProgram(session.artifact(), "train")), profile(program),
      seed(seed) {
  for (int64_t round = 1; round <= shape.rounds; ++round)
    for (int64_t piece = 0; piece < shape.pieces; ++piece)
      parts.push_back({piece, shape.pieces, round < shape.rounds});
  events.reserve(program.instructions() ? program.instructions()->size() * parts.size() : 0);
}

void StepRunner::startTrace() {
  trace = std::make_unique<ChromeTrace>(session.artifact().root(), program, session.control());
}

void StepRunner::writeTrace(const std::string &path) {
  if (trace)
    trace->write(path);
}

static double seconds(int64_t begin, int64_t end) {
  return static_cast<double>(end - begin) * 1e-9;
}

/// The batch; none if this rank lacks it or, at the step's last one, some rank lacked any. Adds the
/// wait for data, those of the other ranks included, unless the device had something to run.
std::optional<BatchLoader::Loaded> StepRunner::load(BatchLoader &loader, int64_t step,
                                                    MicroBatch part, StepOutcome &outcome) {
  int64_t begin = nowNanoseconds();
  std::optional<BatchLoader::Loaded> loaded;
  try {
    loaded = loader.acquire();
  } catch (const std::exception &problem) {
    outcome.failure = problem.what();
  }
  if (!loaded || part.isLast()) {
    ControlPlane &control = session.control();
    std::vector<double> failures = {loaded ? 0.0 : 1.0};
    control.sum(failures, "loading of the batches of step " + std::to_string(step + 1));
    if (failures[0] > 0)
      outcome.failure = firstError(control, outcome.failure);
  }
  if (!session.isRunning("train"))
    outcome.dataWait += seconds(begin, nowNanoseconds());
  return outcome.failure.empty() ? loaded : std::nullopt;
}

/// Of the batch under way, to which its slot belongs until then.
void StepRunner::takeResults(BatchLoader &loader, Started &of, MicroBatch part) {
  std::vector<Pair> results = session.results("train", of.slot);
  std::vector<Pair> &totals = of.outcome.totals;
  totals.resize(results.size());
  for (size_t i = 0; i < results.size() && !part.counts; ++i) {
    totals[i].sum += results[i].sum;
    totals[i].count += results[i].count;
  }
  loader.release(); // only now: results may lie in the input's memory
}

StepRunner::Started StepRunner::start(BatchLoader &loader, int64_t step, double rate) {
  Started starting;
  starting.begin = nowNanoseconds();
  session.setScalar("lr", rate);
  events.clear();
  session.trace(trace || !session.runsAhead() ? &events : nullptr);
  for (const MicroBatch &part : parts) {
    std::optional<BatchLoader::Loaded> loaded = load(loader, step, part, starting.outcome);
    if (!loaded)
      break;
    if (starting.dataTaken == 0)
      starting.dataTaken = nowNanoseconds();
    setStepScalars(session, seed, step, program.batch(), loaded->batch.valid, part);
    starting.slot = loaded->slot;
    session.run("train", loaded->slot, static_cast<uint64_t>(step), part);
    if (&part != &parts.back())
      takeResults(loader, starting, part);
  }
  session.trace(nullptr);
  return starting;
}

void StepRunner::finish(Started &of, int64_t step, bool stopWanted) {
  int64_t ran = nowNanoseconds();
  StepOutcome &outcome = of.outcome;
  std::vector<double> message = {stopWanted ? 1.0 : 0.0};
  for (const Pair &pair : outcome.totals) {
    message.push_back(pair.sum);
    message.push_back(pair.count);
  }
  session.control().sum(message, "sum of the metrics of step " + std::to_string(step + 1));
  outcome.stop = message[0] > 0;
  for (size_t i = 0; i < outcome.totals.size(); ++i)
    outcome.totals[i] = {message[1 + 2 * i], message[2 + 2 * i]};

  int64_t end = nowNanoseconds();
  outcome.seconds = seconds(std::max(of.begin, lastEnd), end);
  lastEnd = end;
  StepTimes times = profile.measure(events);
  outcome.communication = times.communication;
  outcome.exposed = times.exposed + (started ? 0 : seconds(ran, end));
  shares.dataWait += outcome.dataWait;
  shares.exposed += outcome.exposed;
  shares.compute += outcome.seconds - outcome.dataWait - outcome.exposed;
  if (trace)
    trace->add(static_cast<uint64_t>(step), events, of.begin, of.dataTaken);
}

StepOutcome StepRunner::run(BatchLoader &loader, int64_t step, double rate,
                            std::optional<double> nextRate, bool stopWanted) {
  Started current = started ? *std::exchange(started, std::nullopt) : start(loader, step, rate);
  if (!current.outcome.failure.empty())
    return current.outcome;
  if (nextRate && session.runsAhead() && parts.size() == 1 && !trace) {
    started = start(loader, step + 1, *nextRate);
    // What was waited for is a part of this step's time.
    current.outcome.dataWait += std::exchange(started->outcome.dataWait, 0);
  }
  takeResults(loader, current, parts.back());
  finish(current, step, stopWanted);
  return current.outcome;
}

} // namespace dlc::rt
