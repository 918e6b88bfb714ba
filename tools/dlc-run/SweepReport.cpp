#include "tools/dlc-run/SweepReport.h"

#include "runtime/record/Chart.h"
#include "runtime/train/Report.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

namespace dlc::run {

double Sweep::efficiency(const SweepRow &row) const {
  const SweepRow &first = rows.front();
  return row.rate / static_cast<double>(row.ranks) /
         (first.rate / static_cast<double>(first.ranks));
}

static const char *nameOf(SweepKind kind) {
  return kind == SweepKind::Batches       ? "batches"
         : kind == SweepKind::WeakScaling ? "weak"
                                          : "strong";
}

template <typename... Values> static std::string format(const char *pattern, Values... values) {
  char text[200];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string sweepTable(const Sweep &sweep) {
  bool scaling = sweep.kind != SweepKind::Batches;
  std::string text = scaling ? format("%6s %10s %12s %12s %12s %12s %14s\n", "ranks", "batch/rank",
                                      "img/s", "efficiency", "step ms", "exposed ms", "memory/rank")
                             : format("%6s %12s %12s %14s\n", "batch", "img/s", "step ms",
                                      sweep.rows.front().ranks > 1 ? "memory/rank" : "memory");
  for (const SweepRow &row : sweep.rows) {
    auto ranks = static_cast<long long>(row.ranks), batch = static_cast<long long>(row.batch);
    std::string memory = rt::bytesText(row.plannedBytes);
    text += scaling ? format("%6lld %10lld %12.1f %11.1f%% %12.2f %12.2f %14s\n", ranks, batch,
                             row.rate, 100 * sweep.efficiency(row), row.stepMilliseconds,
                             row.exposedMilliseconds, memory.c_str())
                    : format("%6lld %12.1f %12.2f %14s\n", batch, row.rate, row.stepMilliseconds,
                             memory.c_str());
  }
  return text;
}

std::string sweepCsv(const Sweep &sweep) {
  std::ostringstream text;
  text << "ranks,batch_per_rank,img_per_s,efficiency,step_ms,exposed_comm_ms,planned_bytes\n";
  for (const SweepRow &row : sweep.rows)
    text << row.ranks << ',' << row.batch << ',' << row.rate << ',' << sweep.efficiency(row) << ','
         << row.stepMilliseconds << ',' << row.exposedMilliseconds << ',' << row.plannedBytes
         << '\n';
  return text.str();
}

std::string sweepJson(const Sweep &sweep) {
  nlohmann::ordered_json json = {{"model", sweep.model}, {"sweep", nameOf(sweep.kind)}};
  if (sweep.threads)
    json["threads"] = sweep.threads;
  for (const SweepRow &row : sweep.rows)
    json["rows"].push_back({{"ranks", row.ranks},
                            {"batch", row.batch},
                            {"img_per_s_total", row.rate},
                            {"efficiency", sweep.efficiency(row)},
                            {"step_ms", row.stepMilliseconds},
                            {"exposed_comm_ms", row.exposedMilliseconds},
                            {"arena_bytes", row.plannedBytes}});
  return json.dump();
}

static rt::ChartLine lineOf(const Sweep &sweep, const std::string &name,
                            const std::function<double(const SweepRow &)> &figure) {
  rt::ChartLine line{name, {}};
  for (const SweepRow &row : sweep.rows)
    line.points.push_back(
        {static_cast<double>(sweep.kind == SweepKind::Batches ? row.batch : row.ranks),
         figure(row)});
  std::sort(line.points.begin(), line.points.end(),
            [](rt::ChartPoint a, rt::ChartPoint b) { return a.x < b.x; });
  return line;
}

static rt::Chart scalingChart(const Sweep &sweep) {
  const SweepRow &first = sweep.rows.front();
  auto ideal = [&](const SweepRow &row) {
    return first.rate * static_cast<double>(row.ranks) / static_cast<double>(first.ranks);
  };
  rt::ChartLine reference = lineOf(sweep, "ideal", ideal);
  reference.isReference = true;
  auto rate = [](const SweepRow &row) { return row.rate; };
  auto efficiency = [&](const SweepRow &row) { return sweep.efficiency(row); };
  auto exposed = [](const SweepRow &row) { return row.exposedMilliseconds; };
  return {sweep.model + ", " + nameOf(sweep.kind) + " scaling",
          "ranks",
          {{"images per second",
            {lineOf(sweep, "measured", rate), reference},
            rt::ChartRange::FromZero},
           {"efficiency", {lineOf(sweep, "efficiency", efficiency)}, rt::ChartRange::Share},
           {"exposed all-reduce, ms per step",
            {lineOf(sweep, "exposed", exposed)},
            rt::ChartRange::FromZero}},
          {}};
}

static rt::Chart batchChart(const Sweep &sweep) {
  auto rate = [](const SweepRow &row) { return row.rate; };
  auto step = [](const SweepRow &row) { return row.stepMilliseconds; };
  auto memory = [](const SweepRow &row) { return static_cast<double>(row.plannedBytes) / 1048576; };
  return {sweep.model + ", batch sizes",
          "batch per rank",
          {{"images per second", {lineOf(sweep, "speed", rate)}, rt::ChartRange::FromZero},
           {"ms per step", {lineOf(sweep, "step", step)}, rt::ChartRange::FromZero},
           {"planned memory per rank, MiB",
            {lineOf(sweep, "memory", memory)},
            rt::ChartRange::FromZero}},
          {}};
}

std::string sweepPicture(const Sweep &sweep) {
  rt::Chart chart = sweep.kind == SweepKind::Batches ? batchChart(sweep) : scalingChart(sweep);
  for (rt::ChartPoint point : chart.panels.front().lines.front().points)
    chart.ticks.push_back(point.x);
  return rt::svgOf(chart);
}

} // namespace dlc::run
