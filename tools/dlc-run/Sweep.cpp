#include "tools/dlc-run/Sweep.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Error.h"
#include "runtime/data/AtomicFile.h"
#include "runtime/train/Signature.h"
#include "tools/dlc-run/Binding.h"
#include "tools/dlc-run/ModelFile.h"
#include "tools/dlc-run/Process.h"
#include "tools/dlc-run/SweepReport.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

namespace dlc::run {

using rt::Error;
using rt::ErrorCode;

namespace {

class Sweeper {
public:
  Sweeper(const Command &command, const rt::StopSignal &stop)
      : command(command), options(command.sweep), stop(stop) {}

  int run();

private:
  bool isScaling() const { return !options.scaling.empty(); }
  bool isForGpu() const;
  bool prepare();
  std::optional<std::string> artifactOf(std::optional<int64_t> batch);
  bool measure(int64_t ranks, std::optional<int64_t> batch);
  double measurePeers(const SweepRow &row, unsigned rowThreads) const;
  std::vector<std::string> call(int64_t ranks, const std::string &artifact) const;
  void keep() const;

  const Command &command;
  const SweepOptions &options;
  const rt::StopSignal &stop;
  Sweep sweep;
  unsigned threads = 0;
  int64_t globalBatch = 0;
  int exitCode = 0;
};

int64_t trainBatch(const std::string &artifact) {
  return rt::requireProgram(rt::Artifact(artifact), "train").batch();
}

/// Compiles for a batch, or as the model says; nothing if the compiler failed, which has said why.
std::optional<std::string> Sweeper::artifactOf(std::optional<int64_t> batch) {
  if (!isModel(command.file))
    return command.file;
  std::vector<std::string> arguments = command.compileOptions;
  if (batch) {
    std::erase_if(arguments, [](const std::string &it) { return it.starts_with("--set=batch="); });
    arguments.push_back("--set=batch=" + std::to_string(*batch));
  }
  CompiledModel compiled = compileModel(command.file, arguments, threads, stop);
  exitCode = compiled.exitCode;
  return compiled.artifact.empty() ? std::nullopt : std::optional(compiled.artifact);
}

bool Sweeper::isForGpu() const {
  if (!isModel(command.file))
    return rt::Artifact(command.file).isForGpu();
  return run::isForGpu(command.compileOptions);
}

/// What is checked before anything is measured; false if the compiler failed.
bool Sweeper::prepare() {
  sweep.kind = !isScaling()                ? SweepKind::Batches
               : options.scaling == "weak" ? SweepKind::WeakScaling
                                           : SweepKind::StrongScaling;
  sweep.model = std::filesystem::path(command.file).stem().string();
  sweep.hasPeers = !options.peers.empty();
  threads = command.threads;
  // The same for every row, so that rows differ in the number of ranks alone.
  if (isScaling() && !threads && !isForGpu()) {
    auto most =
        static_cast<unsigned>(*std::max_element(options.ranks.begin(), options.ranks.end()));
    threads = std::max(usableCores() / most, 1u);
    if (!isModel(command.file))
      threads = std::min(threads, rt::Artifact(command.file)->target()->threads());
  }
  sweep.threads = threads;
  if (sweep.kind != SweepKind::StrongScaling)
    return true;
  globalBatch = options.globalBatch;
  if (!globalBatch) {
    std::optional<std::string> artifact = artifactOf(std::nullopt);
    if (!artifact)
      return false;
    globalBatch = trainBatch(*artifact);
  }
  for (int64_t ranks : options.ranks)
    if (globalBatch % ranks != 0)
      throw Error(ErrorCode::BadInput, "a global batch of " + std::to_string(globalBatch) +
                                           " cannot be split over " + std::to_string(ranks) +
                                           " ranks: choose another with --global-batch");
  return true;
}

/// This program's arguments for one row.
std::vector<std::string> Sweeper::call(int64_t ranks, const std::string &artifact) const {
  std::vector<std::string> arguments = {ownPath()};
  if (ranks > 1)
    arguments.insert(arguments.end(), {"-np", std::to_string(ranks)});
  const rt::BenchOptions &bench = command.bench;
  arguments.insert(arguments.end(),
                   {"bench", artifact, "--json", "--warmup", std::to_string(bench.warmup),
                    "--iters", std::to_string(bench.iterations), "--batches-per-iter",
                    std::to_string(bench.batchesPerIteration), "--timeout",
                    std::to_string(command.timeout)});
  if (threads)
    arguments.insert(arguments.end(), {"--threads", std::to_string(threads)});
  if (command.noGraph)
    arguments.emplace_back("--no-graph");
  if (command.bind)
    arguments.insert(arguments.end(), {"--bind", *command.bind == Bind::None      ? "none"
                                                 : *command.bind == Bind::Compact ? "compact"
                                                                                  : "spread"});
  return arguments;
}

/// Adds a row; false if compiler or run failed, which have said why.
bool Sweeper::measure(int64_t ranks, std::optional<int64_t> batch) {
  std::optional<std::string> artifact = artifactOf(batch);
  if (!artifact)
    return false;
  if (!command.bench.json) {
    std::printf("measuring %lld %s x batch %lld\n", static_cast<long long>(ranks),
                ranks == 1 ? "rank" : "ranks", static_cast<long long>(trainBatch(*artifact)));
    std::fflush(stdout);
  }
  std::string output;
  exitCode = captureProcess(call(ranks, *artifact), output, stop);
  if (exitCode >= 128) // it could not say anything
    throw stop.received() ? Error(ErrorCode::Interrupted, "interrupted by " + stop.name())
                          : Error(ErrorCode::Runtime, "dlc-run bench was ended by signal " +
                                                          std::to_string(exitCode - 128));
  if (exitCode == 0 && stop.received())
    throw Error(ErrorCode::Interrupted, "interrupted by " + stop.name());
  if (exitCode != 0)
    return false;
  auto record = nlohmann::json::parse(output, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object())
    throw Error(ErrorCode::Runtime, "dlc-run bench gave no record");
  sweep.model = record["model"];
  SweepRow row;
  row.ranks = ranks;
  row.batch = record["batch"];
  row.rate = record["img_per_s_total"];
  row.stepMilliseconds = record["step_ms"];
  row.forwardMilliseconds = record["forward_ms"];
  row.backwardMilliseconds = record["backward_ms"];
  row.exposedMilliseconds = record["exposed_comm_ms"];
  row.wireBytes = record["wire_bytes"];
  row.plannedBytes = record["arena_bytes"];
  if (sweep.hasPeers)
    row.peerRate = measurePeers(row, record["threads"]);
  sweep.rows.push_back(row);
  return true;
}

/// Images a second of what --peers starts. Throws Error(Runtime) if it fails, and has said why.
double Sweeper::measurePeers(const SweepRow &row, unsigned rowThreads) const {
  std::string output;
  int code = captureProcess({"sh", "-c", options.peers + " \"$@\"", "sh", std::to_string(row.ranks),
                             std::to_string(row.batch), std::to_string(rowThreads)},
                            output, stop);
  if (stop.received())
    throw Error(ErrorCode::Interrupted, "interrupted by " + stop.name());
  double milliseconds = std::strtod(output.c_str(), nullptr);
  if (code != 0 || !(milliseconds > 0))
    throw Error(ErrorCode::Runtime,
                "--peers '" + options.peers + "' gave no milliseconds per step for " +
                    std::to_string(row.ranks) + " ranks, batch " + std::to_string(row.batch) +
                    ", " + std::to_string(rowThreads) + " threads (exit code " +
                    std::to_string(code) + ")");
  return static_cast<double>(row.ranks * row.batch) * 1e3 / milliseconds;
}

void Sweeper::keep() const {
  std::string stem = options.output;
  if (stem.empty() && isScaling())
    stem = sweep.model + "-" + options.scaling + "-scaling";
  if (stem.empty())
    return;
  auto write = [](const std::string &path, const std::string &text) {
    rt::AtomicFile file(path);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  };
  write(stem + ".csv", sweepCsv(sweep));
  write(stem + ".svg", sweepPicture(sweep));
  if (!command.bench.json)
    std::printf("wrote %s.csv and %s.svg\n", stem.c_str(), stem.c_str());
}

int Sweeper::run() {
  if (!prepare())
    return exitCode;
  for (int64_t batch : options.batches)
    if (!measure(std::max(command.ranks, 1), batch))
      return exitCode;
  for (int64_t ranks : options.ranks)
    if (!measure(ranks, globalBatch ? std::optional(globalBatch / ranks) : std::nullopt))
      return exitCode;
  std::printf("%s%s", command.bench.json ? sweepJson(sweep).c_str() : sweepTable(sweep).c_str(),
              command.bench.json ? "\n" : "");
  keep();
  return 0;
}

} // namespace

bool isSweep(const Command &command) {
  return command.verb == Verb::Bench &&
         (!command.sweep.batches.empty() || !command.sweep.scaling.empty());
}

int runSweep(const Command &command, const rt::StopSignal &stop) {
  return Sweeper(command, stop).run();
}

} // namespace dlc::run
