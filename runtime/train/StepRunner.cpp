#include "runtime/train/StepRunner.h"

#include "runtime/artifact/Error.h"
#include "runtime/train/CollectiveError.h"
#include "runtime/train/Evaluate.h"
#include "runtime/train/Signature.h"

#include <cmath>

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
/// wait for data, those of the other ranks included.
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
  outcome.dataWait += seconds(begin, nowNanoseconds());
  return outcome.failure.empty() ? loaded : std::nullopt;
}

/// One batch: adds its losses, metrics and wait for data to the outcome. False if there is none.
bool StepRunner::runPiece(BatchLoader &loader, int64_t step, MicroBatch part,
                          StepOutcome &outcome) {
  std::optional<BatchLoader::Loaded> loaded = load(loader, step, part, outcome);
  if (!loaded)
    return false;
  setStepScalars(session, seed, step, program.batch(), loaded->batch.valid, part);
  session.run("train", loaded->slot, static_cast<uint64_t>(step), part);
  std::vector<Pair> results = session.results("train"); // which may lie in the input's memory
  outcome.totals.resize(results.size());
  for (size_t i = 0; i < results.size() && !part.counts; ++i) {
    outcome.totals[i].sum += results[i].sum;
    outcome.totals[i].count += results[i].count;
  }
  loader.release();
  return true;
}

StepOutcome StepRunner::run(BatchLoader &loader, int64_t step, double rate, bool stopWanted) {
  int64_t begin = nowNanoseconds();
  session.setScalar("lr", rate);
  events.clear();
  session.trace(trace || session.tracesFreely() ? &events : nullptr);
  StepOutcome outcome;
  int64_t haveData = begin; // the first of it: what a trace shows
  for (size_t i = 0; i < parts.size() && outcome.failure.empty(); ++i)
    if (runPiece(loader, step, parts[i], outcome) && i == 0)
      haveData += std::llround(outcome.dataWait * 1e9);
  session.trace(nullptr);
  if (!outcome.failure.empty())
    return outcome;
  int64_t ran = nowNanoseconds();
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
  outcome.seconds = seconds(begin, end);
  StepTimes times = profile.measure(events);
  outcome.communication = times.communication;
  outcome.exposed = times.exposed + seconds(ran, end);
  shares.dataWait += outcome.dataWait;
  shares.exposed += outcome.exposed;
  shares.compute += outcome.seconds - outcome.dataWait - outcome.exposed;
  if (trace)
    trace->add(static_cast<uint64_t>(step), events, begin, haveData);
  return outcome;
}

} // namespace dlc::rt
