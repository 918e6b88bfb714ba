#include "runtime/profile/Bench.h"
#include "runtime/artifact/JsonText.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/Hash.h"
#include "runtime/core/BackEnd.h"
#include "runtime/core/BytesText.h"
#include "runtime/core/Pages.h"
#include "runtime/profile/KernelTable.h"
#include "runtime/profile/KindTable.h"
#include "runtime/profile/StandaloneTimes.h"
#include "runtime/profile/SyntheticSteps.h"
#include "runtime/record/ChromeTrace.h"
#include "runtime/record/ProcessTime.h"
#include "runtime/train/Replicas.h"
#include "runtime/train/Report.h"
#include "runtime/train/Signature.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

namespace dlc::rt {

namespace {

class Bench {
public:
  Bench(Session &session, const BenchOptions &options, Console &console)
      : session(session), options(options), console(console), steps(session),
        model(session.artifact()->model()->str()),
        device(session.artifact().isForGpu() ? "GPU" : "CPU"), ranks(session.control().size()),
        batch(requireProgram(session.artifact(), "train").batch()) {}

  void measure();
  void profile();
  void hashVariables();
  void shareInstructionTimes();
  void printSummary();
  nlohmann::ordered_json record() const;

private:
  void say(const std::string &text) {
    if (!options.json)
      console.line(text);
  }

  Session &session;
  const BenchOptions &options;
  Console &console;
  SyntheticSteps steps;
  std::string model, device;
  int ranks;
  double batch;
  std::vector<uint64_t> instructionTimes; // nanoseconds; waits are 0
  double rate = 0, interval = 0;          // images a second and device; 95 % as Horovod prints it
  uint64_t peakResident = 0;              // of the steps alone
  uint64_t variablesHash = 0;             // behind the last step of those
  MachineSpeed speed;
  std::optional<KindTable> kinds;     // if profiled
  std::optional<KernelTable> kernels; // if asked for
};

std::string format(const char *pattern, double a, double b = 0) {
  char text[160];
  std::snprintf(text, sizeof text, pattern, a, b);
  return text;
}

void Bench::measure() {
  say("Model: " + model);
  say(format("Batch size: %.0f", batch));
  say("Number of " + device + "s: " + std::to_string(ranks));
  if (!session.artifact().isForGpu())
    say(pagesText(session.arenaPages()));
  // Reading the clock between instructions holds up a GPU: there it is done in steps of their own.
  using Record = SyntheticSteps::Record;
  bool apart = session.runsAhead();
  Record watched = apart ? Record::Nothing : Record::Figures;
  say("Running warmup...");
  steps.run(options.warmup, apart ? Record::Nothing : Record::Times);
  say("Running benchmark...");
  std::vector<double> rates;
  for (int64_t i = 0; i < options.iterations; ++i) {
    session.control().barrier("start of a measurement");
    int64_t begin = nowNanoseconds();
    steps.run(options.batchesPerIteration, watched);
    session.control().barrier("end of a measurement");
    double seconds = static_cast<double>(nowNanoseconds() - begin) * 1e-9;
    rates.push_back(batch * static_cast<double>(options.batchesPerIteration) / seconds);
    say("Iter #" + std::to_string(i) + format(": %.1f img/sec per ", rates.back()) + device);
  }
  peakResident = residentBytes().peak;
  if (options.json)
    hashVariables();
  if (apart) {
    steps.run(options.warmup, Record::Times);
    steps.run(options.batchesPerIteration, Record::Figures);
  }
  shareInstructionTimes();
  double variance = 0;
  for (double each : rates)
    rate += each / static_cast<double>(rates.size());
  for (double each : rates)
    variance += (each - rate) * (each - rate) / static_cast<double>(rates.size());
  interval = 1.96 * std::sqrt(variance);
}

void Bench::hashVariables() {
  std::vector<uint64_t> hashes = variableHashes(session);
  variablesHash =
      hash64({reinterpret_cast<const uint8_t *>(hashes.data()), hashes.size() * sizeof(uint64_t)});
}

/// Takes the rank whose instructions take longest: a step of all ranks is no shorter.
void Bench::shareInstructionTimes() {
  const artifact::Program &program = requireProgram(session.artifact(), "train");
  std::vector<uint64_t> mine(program.instructions() ? program.instructions()->size() : 0);
  for (size_t i = 0; i < mine.size(); ++i) {
    double seconds = 0;
    auto instruction = static_cast<unsigned>(i);
    artifact::Operation operation = program.instructions()->Get(instruction)->operation_type();
    if (operation != artifact::Operation::CollectiveWait &&
        operation != artifact::Operation::WaitEvent)
      for (const MeasuredStep &step : steps.measured())
        seconds += step.instructions[i];
    mine[i] = static_cast<uint64_t>(std::llround(
        seconds * 1e9 / static_cast<double>(std::max<size_t>(steps.measured().size(), 1))));
  }
  uint64_t longest = 0;
  for (const std::vector<std::byte> &bytes :
       session.control().allGather(std::as_bytes(std::span(mine)), "exchange of kernels' times")) {
    std::vector<uint64_t> theirs(bytes.size() / sizeof(uint64_t));
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    uint64_t sum = std::accumulate(theirs.begin(), theirs.end(), uint64_t{0});
    if (sum >= longest) {
      longest = sum;
      instructionTimes = theirs;
    }
  }
}

/// Measures on all ranks at a time, since they share the machine in a step, too.
void Bench::profile() {
  constexpr double limitSeconds = 15;
  const Artifact &artifact = session.artifact();
  std::string reason;
  const BackEnd *backEnd = findBackEnd(artifact->target()->name()->str(), reason);
  if (!backEnd)
    throw Error(ErrorCode::Runtime, reason);
  const artifact::Program &program = requireProgram(artifact, "train");
  session.control().barrier("start of the profile");
  say("measuring memory...");
  speed = backEnd->measureMachine(session.control().localRank());
  session.control().barrier("measuring memory");
  std::map<uint32_t, double> standalone = standaloneTimes(
      session, program, limitSeconds, [this](const std::string &text) { say(text); });
  session.control().barrier("measuring kernels alone");
  double exposed =
      ranks > 1 && program.forecast() ? static_cast<double>(program.forecast()->exposed_ns()) : 0;
  MeasuredStep mean = middleOf(steps.measured());
  std::vector<InstructionBound> bounds = stepBounds(session, program, speed, standalone);
  kinds.emplace(mean, bounds, exposed * 1e-9);
  if (options.profile == Profile::Kernels)
    kernels.emplace(artifact, program, mean, bestOf(steps.measured()), bounds);
}

void Bench::printSummary() {
  say("Img/sec per " + device + format(": %.1f +-%.1f", rate, interval));
  say("Total img/sec on " + std::to_string(ranks) + " " + device + "(s)" +
      format(": %.1f +-%.1f", ranks * rate, ranks * interval));
  say(format("forward %.3f ms, backward %.3f ms, ", steps.phase(0), steps.phase(1)) +
      format("optimizer %.3f ms, all-reduce %.3f ms, ", steps.phase(2), steps.communication()) +
      format("of which exposed %.3f ms", steps.exposed()));
  say(firstStepText(steps.firstStepSeconds(), session.startPhases()));
  say(format("on the wire %.0f bytes a step and rank, ", steps.wireBytes()) + "memory " +
      bytesText(session.arenaBytes()) + " a rank, resident " + bytesText(peakResident) +
      " at its peak, " + bytesText(session.residentBefore()) + " before the arenas");
  if (kinds)
    for (const std::string &line : kinds->lines(speed))
      say(line);
  constexpr size_t mostKernels = 40;
  if (kernels)
    for (const std::string &line : kernels->lines(mostKernels))
      say(line);
  if (unsigned planned = session.artifact()->target()->threads();
      kinds && planned != session.threads() && !session.artifact().isForGpu())
    say("forecasts are for " + std::to_string(planned) + " threads, as the plan is");
}

nlohmann::ordered_json Bench::record() const {
  nlohmann::ordered_json record = {{"model", model},
                                   {"device", device},
                                   {"ranks", ranks},
                                   {"threads", session.threads()},
                                   {"batch", batch},
                                   {"img_per_s_per_device", rate},
                                   {"img_per_s_interval", interval},
                                   {"img_per_s_total", ranks * rate},
                                   {"step_ms", 1e3 * batch / rate},
                                   {"first_step_s", steps.firstStepSeconds()},
                                   {"forward_ms", steps.phase(0)},
                                   {"backward_ms", steps.phase(1)},
                                   {"optimizer_ms", steps.phase(2)},
                                   {"comm_ms", steps.communication()},
                                   {"exposed_comm_ms", steps.exposed()},
                                   {"wire_bytes", steps.wireBytes()},
                                   {"arena_bytes", session.arenaBytes()},
                                   {"peak_resident_bytes", peakResident},
                                   {"resident_before_bytes", session.residentBefore()},
                                   {"variables_hash", variablesHash},
                                   {"instruction_ns", instructionTimes}};
  if (kinds)
    kinds->addTo(record, speed);
  if (kernels)
    kernels->addTo(record);
  return record;
}

} // namespace

void bench(Session &session, const BenchOptions &options, Console &console) {
  Bench bench(session, options, console);
  bench.measure();
  if (options.profile != Profile::None)
    bench.profile();
  bench.printSummary();
  if (options.json)
    console.line(jsonText(bench.record()));
}

} // namespace dlc::rt
