#include "runtime/profile/KindTable.h"

#include "runtime/record/TableText.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <numeric>

namespace dlc::rt {
namespace {

struct Name {
  const char *category, *text;
};
constexpr Name names[] = {{"conv.forward", "convolution forward"},
                          {"conv.grad_data", "convolution data"},
                          {"conv.grad_filter", "convolution filter"},
                          {"dense", "dense"},
                          {"norm", "normalisation"},
                          {"pointwise", "pointwise"},
                          {"pooling", "pooling"},
                          {"loss", "loss"},
                          {"optimizer", "optimizer"},
                          {"reorder", "reorder"},
                          {"copy", "copies"},
                          {"all-reduce", "all-reduce exposed"},
                          {"idle", "idle"}};

std::string nameOf(const std::string &kind) {
  const auto *name = std::ranges::find(names, kind, &Name::category);
  return name == std::end(names) ? kind : name->text;
}

std::string ratesText(const MachineSpeed &speed) {
  std::string text;
  for (const auto &[name, rates, bytes] : speed.memory)
    text += (text.empty() ? "" : ", ") +
            format("%s %.1f / %.1f / %.1f", name.c_str(), rates.read, rates.update, rates.copy);
  return text;
}

} // namespace

KindRow &KindTable::row(const std::string &kind) {
  auto found = std::ranges::find(rows, kind, &KindRow::kind);
  return found != rows.end() ? *found : rows.emplace_back(KindRow{kind});
}

KindTable::KindTable(const MeasuredStep &measured, const std::vector<InstructionBound> &bounds,
                     double forecastExposed)
    : step(measured.seconds) {
  for (const Name &name : names)
    row(name.category);
  for (size_t i = 0; i < bounds.size(); ++i) {
    const InstructionBound &each = bounds[i];
    if (each.kind.empty())
      continue;
    KindRow &sum = row(each.kind);
    sum.seconds += measured.instructions[i];
    sum.bytes += each.bytes;
    sum.flops += each.flops;
    sum.bound += each.bound;
    sum.forecast += each.forecast;
    (each.library ? libraryBound : memoryBound) += each.bound;
  }
  row("idle").seconds =
      step - std::reduce(measured.instructions.begin(), measured.instructions.end());
  row("all-reduce").forecast = forecastExposed;
  for (const KindRow &each : rows)
    forecast += each.forecast;
}

std::vector<std::string> KindTable::lines(const MachineSpeed &speed) const {
  std::vector<std::string> lines{
      "kind                        ms     share        GB      GB/s   GFLOP/s  bound ms  of bound  "
      "forecast  measured / forecast"};
  auto add = [&](const KindRow &row, const std::string &name) {
    double ms = 1e3 * row.seconds;
    lines.push_back(format("%-20s", name.c_str()) + cell(ms, "%.3f") +
                    cell(step > 0 ? 100 * row.seconds / step : 0, "%.1f%%") +
                    cell(row.bytes * 1e-9, "%.3f") +
                    cell(row.seconds > 0 ? row.bytes * 1e-9 / row.seconds : 0, "%.1f") +
                    cell(row.seconds > 0 ? row.flops * 1e-9 / row.seconds : 0, "%.1f") +
                    cell(1e3 * row.bound, "%.3f") +
                    cell(row.seconds > 0 ? 100 * row.bound / row.seconds : 0, "%.0f%%") +
                    cell(1e3 * row.forecast, "%.3f") +
                    cell(row.forecast > 0 ? row.seconds / row.forecast : 0, "%.2f"));
  };
  KindRow sum{"step"};
  for (const KindRow &row : rows) {
    if (row.seconds > 0 || row.forecast > 0)
      add(row, nameOf(row.kind));
    sum.bytes += row.bytes;
    sum.flops += row.flops;
  }
  sum.seconds = step;
  sum.bound = bound();
  sum.forecast = forecast;
  add(sum, "step");
  lines.push_back("memory here, read / update / copy in GB/s on the bus: " + ratesText(speed) +
                  (speed.gigaflops > 0 ? format("; %.0f GFLOP/s", speed.gigaflops) : ""));
  lines.push_back(format("step %.2f x (library alone %.3f ms + bytes / bandwidth %.3f ms)",
                         bound() > 0 ? step / bound() : 0, 1e3 * libraryBound, 1e3 * memoryBound));
  return lines;
}

void KindTable::addTo(nlohmann::ordered_json &record, const MachineSpeed &speed) const {
  for (const KindRow &row : rows) {
    if (row.seconds <= 0 && row.forecast <= 0)
      continue;
    std::string prefix = "profile." + row.kind + ".";
    record[prefix + "ms"] = 1e3 * row.seconds;
    record[prefix + "bytes"] = row.bytes;
    record[prefix + "flops"] = row.flops;
    record[prefix + "bound_ms"] = 1e3 * row.bound;
    record[prefix + "forecast_ms"] = 1e3 * row.forecast;
  }
  record["profile.step_ms"] = 1e3 * step;
  record["profile.forecast_ms"] = 1e3 * forecast;
  record["profile.library_alone_ms"] = 1e3 * libraryBound;
  record["profile.memory_bound_ms"] = 1e3 * memoryBound;
  record["profile.step_over_bound"] = bound() > 0 ? step / bound() : 0;
  for (const auto &[name, rates, bytes] : speed.memory) {
    std::string prefix = "machine." + name + ".";
    std::ranges::transform(prefix, prefix.begin(), [](unsigned char c) { return std::tolower(c); });
    record[prefix + "read_gb_per_s"] = rates.read;
    record[prefix + "update_gb_per_s"] = rates.update;
    record[prefix + "copy_gb_per_s"] = rates.copy;
  }
  if (speed.gigaflops > 0)
    record["machine.gflops"] = speed.gigaflops;
}

} // namespace dlc::rt
