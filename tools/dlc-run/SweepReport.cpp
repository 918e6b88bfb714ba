#include "tools/dlc-run/SweepReport.h"

#include "runtime/train/Report.h"

#include <algorithm>
#include <cstdio>
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

std::string sweepPicture(const Sweep &sweep) {
  constexpr double width = 640, height = 400, left = 72, bottom = 52, top = 48, right = 24;
  double perRank = sweep.rows.front().rate / static_cast<double>(sweep.rows.front().ranks);
  double mostRanks = 1, mostRate = 0;
  for (const SweepRow &row : sweep.rows) {
    mostRanks = std::max(mostRanks, static_cast<double>(row.ranks));
    mostRate = std::max({mostRate, row.rate, perRank * static_cast<double>(row.ranks)});
  }
  auto x = [&](double ranks) { return left + (width - left - right) * ranks / mostRanks; };
  auto y = [&](double rate) { return height - bottom - (height - top - bottom) * rate / mostRate; };
  std::ostringstream svg;
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height
      << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"" << left
      << "\" y=\"24\" font-size=\"14\">" << sweep.model << ", " << nameOf(sweep.kind)
      << " scaling</text>\n<path d=\"M" << left << ' ' << top << "V" << height - bottom << "H"
      << width - right << "\" fill=\"none\" stroke=\"black\"/>\n<text x=\"" << (width + left) / 2
      << "\" y=\"" << height - 12 << "\" text-anchor=\"middle\">ranks</text>\n<text x=\"4\" y=\""
      << top - 8 << "\">img/s</text>\n<path d=\"M" << x(0) << ' ' << y(0) << "L" << x(mostRanks)
      << ' ' << y(perRank * mostRanks)
      << "\" fill=\"none\" stroke=\"#999999\" stroke-dasharray=\"5 4\"/>\n";
  std::ostringstream points;
  for (const SweepRow &row : sweep.rows) {
    double px = x(static_cast<double>(row.ranks)), py = y(row.rate);
    points << px << ',' << py << ' ';
    bool onLeft = px < (left + width - right) / 2; // labels stay inside the picture
    svg << "<circle cx=\"" << px << "\" cy=\"" << py << "\" r=\"4\" fill=\"#1f77b4\"/>\n<text x=\""
        << px + (onLeft ? 8 : -8) << "\" y=\"" << py + 18 << "\" text-anchor=\""
        << (onLeft ? "start" : "end") << "\">"
        << format("%.1f img/s, %.0f %%", row.rate, 100 * sweep.efficiency(row))
        << "</text>\n<text x=\"" << px << "\" y=\"" << height - bottom + 16
        << "\" text-anchor=\"middle\">" << row.ranks << "</text>\n";
  }
  svg << "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"#1f77b4\" points=\"" << points.str()
      << "\"/>\n</svg>\n";
  return svg.str();
}

} // namespace dlc::run
