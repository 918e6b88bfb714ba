#include "tools/dlc-run/SweepReport.h"
#include "runtime/artifact/JsonText.h"

#include "runtime/core/BytesText.h"
#include "runtime/record/Chart.h"

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
  char text[240];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string sweepTable(const Sweep &sweep) {
  bool scaling = sweep.kind != SweepKind::Batches, distributed = sweep.rows.front().ranks > 1;
  std::string text =
      scaling ? format("%6s %10s %9s %9s %11s %9s %11s %12s %11s %12s %12s", "ranks", "batch/rank",
                       "img/s", "speed-up", "efficiency", "step ms", "forward ms", "backward ms",
                       "exposed ms", "sent/rank", "memory/rank")
              : format("%6s %12s %12s %14s", "batch", "img/s", "step ms",
                       distributed ? "memory/rank" : "memory");
  text += sweep.hasPeers ? "   peers img/s\n" : "\n";
  for (const SweepRow &row : sweep.rows) {
    auto ranks = static_cast<long long>(row.ranks), batch = static_cast<long long>(row.batch);
    std::string memory = rt::bytesText(row.plannedBytes);
    text +=
        scaling
            ? format("%6lld %10lld %9.1f %9.2f %10.1f%% %9.2f %11.2f %12.2f %11.2f %12s %12s",
                     ranks, batch, row.rate, sweep.speedUp(row), 100 * sweep.efficiency(row),
                     row.stepMilliseconds, row.forwardMilliseconds, row.backwardMilliseconds,
                     row.exposedMilliseconds,
                     rt::bytesText(static_cast<uint64_t>(row.wireBytes)).c_str(), memory.c_str())
            : format("%6lld %12.1f %12.2f %14s", batch, row.rate, row.stepMilliseconds,
                     memory.c_str());
    text += sweep.hasPeers ? format("%14.1f\n", row.peerRate) : "\n";
  }
  return text;
}

std::string sweepCsv(const Sweep &sweep) {
  std::ostringstream text;
  text << "ranks,batch_per_rank,img_per_s,speed_up,efficiency,step_ms,forward_ms,backward_ms,"
          "exposed_comm_ms,wire_bytes,planned_bytes"
       << (sweep.hasPeers ? ",peers_img_per_s\n" : "\n");
  for (const SweepRow &row : sweep.rows) {
    text << row.ranks << ',' << row.batch << ',' << row.rate << ',' << sweep.speedUp(row) << ','
         << sweep.efficiency(row) << ',' << row.stepMilliseconds << ',' << row.forwardMilliseconds
         << ',' << row.backwardMilliseconds << ',' << row.exposedMilliseconds << ','
         << row.wireBytes << ',' << row.plannedBytes;
    if (sweep.hasPeers)
      text << ',' << row.peerRate;
    text << '\n';
  }
  return text.str();
}

std::string sweepJson(const Sweep &sweep) {
  nlohmann::ordered_json json = {{"model", sweep.model}, {"sweep", nameOf(sweep.kind)}};
  if (sweep.threads)
    json["threads"] = sweep.threads;
  for (const SweepRow &row : sweep.rows) {
    json["rows"].push_back({{"ranks", row.ranks},
                            {"batch", row.batch},
                            {"img_per_s_total", row.rate},
                            {"speed_up", sweep.speedUp(row)},
                            {"efficiency", sweep.efficiency(row)},
                            {"step_ms", row.stepMilliseconds},
                            {"forward_ms", row.forwardMilliseconds},
                            {"backward_ms", row.backwardMilliseconds},
                            {"exposed_comm_ms", row.exposedMilliseconds},
                            {"wire_bytes", row.wireBytes},
                            {"arena_bytes", row.plannedBytes}});
    if (sweep.hasPeers)
      json["rows"].back()["peers_img_per_s_total"] = row.peerRate;
  }
  return rt::jsonText(json);
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

/// With those of the peers.
static std::vector<rt::ChartLine> rates(const Sweep &sweep, std::vector<rt::ChartLine> lines) {
  if (sweep.hasPeers)
    lines.push_back(lineOf(sweep, "peers", [](const SweepRow &row) { return row.peerRate; }));
  return lines;
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
  auto forward = [](const SweepRow &row) { return row.forwardMilliseconds; };
  auto backward = [](const SweepRow &row) { return row.backwardMilliseconds; };
  auto exposed = [](const SweepRow &row) { return row.exposedMilliseconds; };
  return {sweep.model + ", " + nameOf(sweep.kind) + " scaling",
          "ranks",
          {{"images per second", rates(sweep, {lineOf(sweep, "measured", rate), reference}),
            rt::ChartRange::FromZero},
           {"efficiency", {lineOf(sweep, "efficiency", efficiency)}, rt::ChartRange::Share},
           {"ms per step",
            {lineOf(sweep, "forward", forward), lineOf(sweep, "backward", backward),
             lineOf(sweep, "exposed all-reduce", exposed)},
            rt::ChartRange::FromZero}},
          {}};
}

static rt::Chart batchChart(const Sweep &sweep) {
  auto rate = [](const SweepRow &row) { return row.rate; };
  auto step = [](const SweepRow &row) { return row.stepMilliseconds; };
  auto memory = [](const SweepRow &row) { return static_cast<double>(row.plannedBytes) / 1048576; };
  return {sweep.model + ", batch sizes",
          "batch per rank",
          {{"images per second", rates(sweep, {lineOf(sweep, "speed", rate)}),
            rt::ChartRange::FromZero},
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
