#include "runtime/train/Bench.h"

#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/Philox.h"
#include "runtime/train/ChromeTrace.h"
#include "runtime/train/Evaluate.h"
#include "runtime/train/Report.h"
#include "runtime/train/Signature.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>

namespace dlc::rt {

namespace {

/// Runs batches and adds up where their time goes.
class Bencher {
public:
  Bencher(Session &session)
      : session(session), program(requireProgram(session.artifact(), "train")), profile(program) {
    for (unsigned slot : {0u, 1u})
      fillInputs(slot);
    session.setScalar("lr", 1e-6); // weights stay where they are, figures finite
  }

  void run(int64_t batches, bool measured) {
    for (int64_t i = 0; i < batches; ++i, ++step) {
      setStepScalars(session, 0, step, program.batch(), program.batch());
      events.clear();
      session.trace(&events);
      session.run("train", static_cast<unsigned>(step % 2), static_cast<uint64_t>(step));
      session.trace(nullptr);
      if (measured)
        add();
    }
  }

  /// Milliseconds a step.
  double phase(size_t index) const { return perStep(times.phases[index]); }
  double exposed() const { return perStep(times.exposed); }
  double communication() const { return perStep(times.communication); }
  std::map<std::string, double> categories() const {
    std::map<std::string, double> result;
    for (const auto &[name, seconds] : byCategory)
      result[name] = perStep(seconds);
    return result;
  }

  /// Bytes that a rank sends in a step.
  double wireBytes() const {
    double bytes = 0, ranks = session.communicator().size();
    if (program.collectives())
      for (const artifact::Collective *collective : *program.collectives())
        bytes += static_cast<double>(collective->elements() * sizeOf(collective->wire()));
    return bytes * 2 * (ranks - 1) / ranks;
  }

private:
  double perStep(double seconds) const {
    return steps ? seconds * 1e3 / static_cast<double>(steps) : 0;
  }

  void add() {
    StepTimes step = profile.measure(events);
    for (size_t i = 0; i < step.phases.size(); ++i)
      times.phases[i] += step.phases[i];
    times.exposed += step.exposed;
    times.communication += step.communication;
    ++steps;
    for (const TraceEvent &event : events)
      if (!isStart(event.instruction))
        byCategory[categoryOf(event.instruction)] +=
            static_cast<double>(event.end - event.begin) * 1e-9;
  }

  /// Such an event lasts until completion, under other instructions.
  bool isStart(uint32_t index) const {
    return program.instructions()->Get(index)->operation_type() ==
           artifact::Operation::CollectiveStart;
  }

  std::string categoryOf(uint32_t index) const {
    const artifact::Instruction &instruction = *program.instructions()->Get(index);
    if (const artifact::Dispatch *dispatch = instruction.operation_as_Dispatch()) {
      const auto *category = session.artifact()->kernels()->Get(dispatch->kernel())->category();
      return category && category->size() ? category->str() : "other";
    }
    switch (instruction.operation_type()) {
    case artifact::Operation::CollectiveWait:
      return "all-reduce wait";
    default:
      return "copies";
    }
  }

  /// Normal numbers, and labels over their range.
  void fillInputs(unsigned slot) {
    for (const InputSpec &spec : inputSpecs(session.artifact(), "train")) {
      std::optional<InputDestination> to = destinationsOf(session, "train", {spec})[0];
      uint32_t stream = randomStream("bench." + spec.name);
      std::vector<float> values(static_cast<size_t>(to->writer.rowElements()));
      uint64_t element = 0;
      for (int64_t row = 0; row < to->writer.rows(); ++row) {
        for (float &value : values)
          value = draw(spec, stream, element++);
        to->writer.writeRow(row, values, to->slots[slot]);
      }
    }
  }

  static float draw(const InputSpec &spec, uint32_t stream, uint64_t element) {
    float uniform = uniform01(philoxBits(0, stream, 0, element));
    if (spec.dtype != artifact::DType::F32)
      return std::floor(uniform * static_cast<float>(std::max<int64_t>(spec.labelRange, 2)));
    if (!spec.neededByPredict) // a target: a mask
      return uniform < 0.5f ? 0.0f : 1.0f;
    float other = uniform01(philoxBits(0, stream, 1, element));
    return std::sqrt(-2 * std::log(1 - uniform)) * std::cos(2 * std::numbers::pi_v<float> * other);
  }

  Session &session;
  const artifact::Program &program;
  StepProfile profile;
  std::vector<TraceEvent> events;
  StepTimes times;
  std::map<std::string, double> byCategory;
  int64_t step = 0, steps = 0;
};

} // namespace

static std::string line(const char *pattern, double a, double b) {
  char text[160];
  std::snprintf(text, sizeof text, pattern, a, b);
  return text;
}

void bench(Session &session, const BenchOptions &options, Console &console) {
  Communicator &communicator = session.communicator();
  const artifact::Artifact &content = session.artifact().root();
  bool onGpu = content.target()->name()->str().starts_with("cuda");
  std::string device = onGpu ? "GPU" : "CPU";
  int ranks = communicator.size();
  double batch = requireProgram(session.artifact(), "train").batch();
  auto say = [&](const std::string &text) {
    if (!options.json)
      console.line(text);
  };
  say("Model: " + content.model()->str());
  say(line("Batch size: %.0f", batch, 0));
  say("Number of " + device + "s: " + std::to_string(ranks));

  Bencher bencher(session);
  say("Running warmup...");
  bencher.run(options.warmup, false);
  say("Running benchmark...");
  std::vector<double> rates;
  for (int64_t i = 0; i < options.iterations; ++i) {
    communicator.barrier();
    int64_t begin = nowNanoseconds();
    bencher.run(options.batchesPerIteration, true);
    communicator.barrier();
    double seconds = static_cast<double>(nowNanoseconds() - begin) * 1e-9;
    rates.push_back(batch * static_cast<double>(options.batchesPerIteration) / seconds);
    say("Iter #" + std::to_string(i) + line(": %.1f img/sec per ", rates.back(), 0) + device);
  }
  double mean = 0, spread = 0;
  for (double rate : rates)
    mean += rate / static_cast<double>(rates.size());
  for (double rate : rates)
    spread += (rate - mean) * (rate - mean) / static_cast<double>(rates.size());
  spread = 1.96 * std::sqrt(spread); // Horovod's 95 % interval
  say("Img/sec per " + device + line(": %.1f +-%.1f", mean, spread));
  say("Total img/sec on " + std::to_string(ranks) + " " + device + "(s)" +
      line(": %.1f +-%.1f", ranks * mean, ranks * spread));
  say(line("forward %.3f ms, backward %.3f ms, ", bencher.phase(0), bencher.phase(1)) +
      line("optimizer %.3f ms, all-reduce %.3f ms, ", bencher.phase(2), bencher.communication()) +
      line("of which exposed %.3f ms", bencher.exposed(), 0));
  say(line("on the wire %.0f bytes a step and rank, ", bencher.wireBytes(), 0) + "memory " +
      bytesText(session.arenaBytes()) + " a rank");
  if (options.profile)
    for (const auto &[category, milliseconds] : bencher.categories())
      say("  " + category + line(" %.3f ms", milliseconds, 0));

  if (options.json) {
    nlohmann::ordered_json record = {{"model", content.model()->str()},
                                     {"device", device},
                                     {"ranks", ranks},
                                     {"threads", session.threads()},
                                     {"batch", batch},
                                     {"img_per_s_per_device", mean},
                                     {"img_per_s_interval", spread},
                                     {"img_per_s_total", ranks * mean},
                                     {"step_ms", 1e3 * batch / mean},
                                     {"forward_ms", bencher.phase(0)},
                                     {"backward_ms", bencher.phase(1)},
                                     {"optimizer_ms", bencher.phase(2)},
                                     {"comm_ms", bencher.communication()},
                                     {"exposed_comm_ms", bencher.exposed()},
                                     {"wire_bytes", bencher.wireBytes()},
                                     {"arena_bytes", session.arenaBytes()}};
    if (options.profile)
      for (const auto &[category, milliseconds] : bencher.categories())
        record["profile." + category] = milliseconds;
    console.line(record.dump());
  }
}

} // namespace dlc::rt
