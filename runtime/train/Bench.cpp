#include "runtime/train/Bench.h"

#include "runtime/core/Pages.h"
#include "runtime/train/ChromeTrace.h"
#include "runtime/train/Report.h"
#include "runtime/train/Signature.h"
#include "runtime/train/SyntheticSteps.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace dlc::rt {

namespace {

class Bench {
public:
  Bench(Session &session, const BenchOptions &options, Console &console)
      : session(session), options(options), console(console), steps(session),
        model(session.artifact()->model()->str()),
        device(session.artifact()->target()->name()->str().starts_with("cuda") ? "GPU" : "CPU"),
        ranks(session.communicator().size()),
        batch(requireProgram(session.artifact(), "train").batch()) {}

  void measure();
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
  double rate = 0, interval = 0; // images a second and device; 95 % as Horovod prints it
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
  say(pagesText(session.arenaPages()));
  say("Running warmup...");
  steps.run(options.warmup, false);
  say("Running benchmark...");
  std::vector<double> rates;
  for (int64_t i = 0; i < options.iterations; ++i) {
    session.communicator().barrier();
    int64_t begin = nowNanoseconds();
    steps.run(options.batchesPerIteration, true);
    session.communicator().barrier();
    double seconds = static_cast<double>(nowNanoseconds() - begin) * 1e-9;
    rates.push_back(batch * static_cast<double>(options.batchesPerIteration) / seconds);
    say("Iter #" + std::to_string(i) + format(": %.1f img/sec per ", rates.back()) + device);
  }
  double variance = 0;
  for (double each : rates)
    rate += each / static_cast<double>(rates.size());
  for (double each : rates)
    variance += (each - rate) * (each - rate) / static_cast<double>(rates.size());
  interval = 1.96 * std::sqrt(variance);
}

void Bench::printSummary() {
  say("Img/sec per " + device + format(": %.1f +-%.1f", rate, interval));
  say("Total img/sec on " + std::to_string(ranks) + " " + device + "(s)" +
      format(": %.1f +-%.1f", ranks * rate, ranks * interval));
  say(format("forward %.3f ms, backward %.3f ms, ", steps.phase(0), steps.phase(1)) +
      format("optimizer %.3f ms, all-reduce %.3f ms, ", steps.phase(2), steps.communication()) +
      format("of which exposed %.3f ms", steps.exposed()));
  say(format("on the wire %.0f bytes a step and rank, ", steps.wireBytes()) + "memory " +
      bytesText(session.arenaBytes()) + " a rank, resident " + bytesText(residentBytes().peak) +
      " at its peak, " + bytesText(session.residentBefore()) + " before the arenas");
  if (options.profile)
    for (const auto &[category, milliseconds] : steps.categories())
      say("  " + category + format(" %.3f ms", milliseconds));
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
                                   {"forward_ms", steps.phase(0)},
                                   {"backward_ms", steps.phase(1)},
                                   {"optimizer_ms", steps.phase(2)},
                                   {"comm_ms", steps.communication()},
                                   {"exposed_comm_ms", steps.exposed()},
                                   {"wire_bytes", steps.wireBytes()},
                                   {"arena_bytes", session.arenaBytes()},
                                   {"peak_resident_bytes", residentBytes().peak},
                                   {"resident_before_bytes", session.residentBefore()}};
  if (options.profile)
    for (const auto &[category, milliseconds] : steps.categories())
      record["profile." + category] = milliseconds;
  return record;
}

} // namespace

void bench(Session &session, const BenchOptions &options, Console &console) {
  Bench bench(session, options, console);
  bench.measure();
  bench.printSummary();
  if (options.json)
    console.line(bench.record().dump());
}

} // namespace dlc::rt
