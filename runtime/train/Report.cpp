#include "runtime/train/Report.h"

#include "runtime/core/Pages.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace dlc::rt {

template <typename... Values> static std::string format(const char *pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

static std::string counted(int64_t count, const std::string &what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string openingText(const RankBatch &shape, int64_t stepsPerEpoch) {
  return counted(shape.ranks, "rank") + " x " +
         (shape.pieces > 1 ? std::to_string(shape.pieces) + " x " : "") + "batch " +
         std::to_string(shape.batch) + " = " + counted(shape.global(), "sample") + " a step, " +
         counted(stepsPerEpoch, "step") + " an epoch";
}

std::string workersText(int ranks, int64_t batch, unsigned threads) {
  return counted(ranks, "rank") + " x batch " + std::to_string(batch) + " x " +
         counted(threads, "thread");
}

std::string monitorText(const Monitor &monitor, bool validated, const std::string &asked) {
  std::string wanted = "val_" + (asked.empty() ? "loss" : asked);
  std::string text = "best is the epoch of the ";
  text += monitor.higherIsBetter ? "highest " : "lowest ";
  text += validated ? wanted
                    : "training loss: there is no " + wanted + " without validation data (--val)";
  if (monitor.patience > 0)
    text += "; the run stops after " + counted(monitor.patience, "epoch") + " without a better one";
  return text;
}

std::string figureText(double value) {
  return std::isnan(value) ? "nan" : format("%.4g", value); // printf shows a sign of it, too
}

std::string epochText(const Record &record, int64_t epochs, bool isBest) {
  std::string text = "epoch " + record["epoch"].dump();
  text += record.value("part", false) ? " (part)" : "/" + std::to_string(epochs);
  for (const auto &[key, value] : record.items()) {
    bool isFigure = key != "event" && key != "step" && key != "epoch" && key != "seconds" &&
                    key != "samples_per_s" && key != "part";
    if (isFigure)
      text += "  " + key + " " +
              (value.is_number() ? figureText(value.get<double>()) : std::string("nan"));
  }
  text += format("  %.1f s  %.1f samples/s", record["seconds"].get<double>(),
                 record["samples_per_s"].get<double>());
  return isBest ? text + "  (best)" : text;
}

std::string closingText(double seconds, const TimeShares &shares) {
  double known =
      shares.compute + shares.exposed + shares.dataWait + shares.evaluation + shares.checkpoint;
  return format("%.2f s = compute %.2f + exposed all-reduce %.2f + data wait %.2f + evaluation "
                "%.2f + checkpoint %.2f + other %.2f",
                seconds, shares.compute, shares.exposed, shares.dataWait, shares.evaluation,
                shares.checkpoint, std::max(0.0, seconds - known));
}

std::string loadingText(const BatchLoader::Work &work, unsigned threads) {
  return format("data: %.0f samples/s a thread, ",
                static_cast<double>(work.samples) / std::max(work.seconds, 1e-9)) +
         counted(threads, "thread") + " per rank";
}

std::string pagesText(const std::vector<ArenaPages> &arenas) {
  std::string text;
  for (const ArenaPages &arena : arenas) {
    if (arena.bytes < hugePageBytes)
      continue;
    std::string name = artifact::EnumNameArenaKind(arena.kind);
    name[0] = static_cast<char>(std::tolower(name[0]));
    double share = static_cast<double>(arena.hugeBytes) / static_cast<double>(arena.bytes);
    text += (text.empty() ? "huge pages: " : ", ") + name + format(" %.0f %%", 100 * share);
  }
  return text.empty() ? "huge pages: none, all arenas are smaller than one" : text;
}

} // namespace dlc::rt
