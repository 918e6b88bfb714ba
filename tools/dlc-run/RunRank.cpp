#include "tools/dlc-run/RunRank.h"
#include "runtime/artifact/JsonText.h"

#include "runtime/artifact/Error.h"
#include "runtime/core/Leftover.h"
#include "runtime/core/Session.h"
#include "runtime/core/StopSignal.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/CollectiveError.h"
#include "runtime/train/Replicas.h"
#include "runtime/train/Report.h"
#include "runtime/train/TiledEvaluation.h"
#include "runtime/train/Trainer.h"
#include "tools/dlc-run/Binding.h"
#include "tools/dlc-run/ModelFile.h"
#include "tools/dlc-run/Process.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

namespace dlc::run {

using namespace rt;

Launch detectLaunch(const Command &command) {
  return rt::detectLaunch([](const char *name) { return std::getenv(name); }, command.ranks > 0);
}

std::string mpiModule() {
  return std::filesystem::path(ownPath()).parent_path() / "../lib/dlc_comm_mpi.so";
}

void printError(const std::string &message) {
  std::string line = errorPrefix + message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::fprintf(stderr, "%s\n", line.c_str());
}

static void runEval(Session &session, const Command &command, Console &console) {
  const Artifact &artifact = session.artifact();
  Dataset dataset(dataPipeline(artifact), evaluationInputs(artifact), inputNames(artifact),
                  command.train.data);
  DataRecord trained = loadWeights(session, command.train.init);
  requireSameClasses(trained.classes, "'" + command.train.init + "'", dataset.classes(), "--data",
                     "give the folders of the training, or the labels in a file");
  dataset.setStatistics(trained.statistics);
  requireEqualReplicas(session, "before the evaluation",
                       "check that '" + command.train.init + "' is the same file on all hosts");
  if (!command.json)
    for (const std::string &notice : dataset.notices())
      console.line("note: " + notice);
  std::vector<int64_t> samples = dataset.evaluationSamples();
  Totals totals = evaluateAnySize(session, dataset, samples, 0);
  nlohmann::ordered_json record = {{"loss", totals.loss()}};
  for (const auto &[name, value] : totals.metrics())
    record[name] = value;
  if (command.json) {
    record["samples"] = samples.size();
    record["ranks"] = session.control().size();
    console.line(rt::jsonText(record));
    return;
  }
  std::string line;
  for (const auto &[name, value] : record.items())
    line += name + " " + (value.is_null() ? "nan" : figureText(value.get<double>())) + "  ";
  console.line(line + "(" + std::to_string(samples.size()) + " samples)");
}

static void perform(const Command &command, Session &session, StopSignal &stop) {
  const ControlPlane &control = session.control();
  // mpirun gives its ranks a terminal of their own, whatever it writes to itself.
  bool terminal =
      command.terminal || (!detectLaunch(command).isRank() && ::isatty(STDOUT_FILENO) == 1);
  Console console(control.rank() == 0, terminal);
  bool inJson = command.json || command.bench.json;
  for (const std::string &notice : session.notices())
    if (!inJson)
      console.line("note: " + notice);
  switch (command.verb) {
  case Verb::Train:
    return Trainer(session, command.train, console, stop).run();
  case Verb::Eval:
    return runEval(session, command, console);
  case Verb::Predict:
    return predict(session, command.predict, console);
  case Verb::Bench:
    return bench(session, command.bench, console);
  case Verb::Tune:
  case Verb::Check:
    return;
  }
}

/// Reports what ended this rank and takes the others along.
static void report(ControlPlane *control, const std::string &message, bool onAllRanks) {
  int rank = control ? control->rank() : 0;
  if (rank > 0 && onAllRanks)
    return;
  // Where all ranks fail alike, rank 0 is to be the one that says so.
  if (rank > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  printError(rank > 0 ? "rank " + std::to_string(rank) + ": " + message : message);
  if (control && control->size() > 1 && !onAllRanks)
    control->abort(message);
}

/// The same, once: who comes second waits for the first.
static void fail(ControlPlane *control, const std::string &message, bool onAllRanks) {
  static std::once_flag hasFailed;
  std::call_once(hasFailed, report, control, message, onAllRanks);
}

/// What a GPU runs may never end, and who frees its memory waits for that: so the process ends
/// without, some seconds later.
static void endLater(ControlPlane &control, const std::string &message, bool onAllRanks) {
  static constexpr std::chrono::seconds patience{5};
  std::thread([&control, message, onAllRanks] {
    std::this_thread::sleep_for(patience);
    fail(&control, message, onAllRanks);
    Leftover::removeAll();
    std::_Exit(1);
  }).detach();
}

static void carryOut(const Command &command, ControlPlane &control, StopSignal &stop) {
  Artifact artifact(command.file);
  auto localSize = static_cast<unsigned>(control.localSize());
  unsigned share = std::max(usableCores() / localSize, 1u);
  // While a GPU computes, the cores are there for its data. Where ranks can have as many each as
  // this one sees, who started them has given each its own; loaders that are more than the cores
  // after all, as in a small part of a large host, only take turns.
  bool onGpu = artifact.isForGpu();
  unsigned loaders = usableCores() * localSize <= onlineCores() ? usableCores() : share;
  if (onGpu && command.threads)
    throw Error(ErrorCode::BadInput,
                "--threads is for CPUs: '" + command.file +
                    "' is for a GPU, whose data all cores of the rank prepare");
  if (command.noGraph && !onGpu)
    throw Error(ErrorCode::BadInput, "--no-graph is for GPUs, '" + command.file + "' is for a CPU");
  unsigned planned = std::max(artifact->target()->threads(), 1u);
  unsigned threads = command.threads ? command.threads : onGpu ? 1 : std::min(share, planned);
  bindRank(command.bind.value_or(localSize > 1 && !onGpu ? Bind::Compact : Bind::None),
           control.localRank(), control.localSize(), onGpu ? loaders : threads);
  Session session(
      artifact, control,
      {threads, command.train.seed.value_or(0), nullptr, onGpu ? loaders : 1, command.noGraph});
  try {
    perform(command, session, stop);
  } catch (const std::exception &error) {
    if (onGpu)
      endLater(control, error.what(), dynamic_cast<const CollectiveError *>(&error) != nullptr);
    throw;
  }
}

int runRank(const Command &command, StopSignal &stop) {
  stop.endAtOnce(interruptedPrefix, command.verb == Verb::Train ? interruptedEarly : "");
  std::unique_ptr<ControlPlane> control;
  auto failed = [&](const char *message, bool onAllRanks) {
    stop.note(); // one error is enough
    fail(control.get(), message, onAllRanks);
    return 1;
  };
  try {
    control = makeControlPlane(detectLaunch(command), mpiModule(), command.timeout);
    carryOut(command, *control, stop);
    stop.note(); // the work is done, and the ranks part in order
    return 0;
  } catch (const CollectiveError &error) {
    return failed(error.what(), true);
  } catch (const std::bad_alloc &) {
    return failed("out of memory", false);
  } catch (const std::exception &error) { // of ours, or a library's
    return failed(error.what(), false);
  }
}

} // namespace dlc::run
