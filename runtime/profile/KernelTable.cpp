#include "runtime/profile/KernelTable.h"

#include "runtime/record/TableText.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace dlc::rt {
namespace {

std::string text(const flatbuffers::String *string) { return string ? string->str() : ""; }

/// Copies and collectives have no kernel: those of a kind are one row.
KernelRow rowOf(const Artifact &artifact, const artifact::Instruction &instruction,
                const std::string &kind) {
  KernelRow row;
  row.kernel = row.kind = kind;
  if (const auto *dispatch = instruction.operation_as_Dispatch()) {
    const artifact::Kernel &kernel = *artifact->kernels()->Get(dispatch->kernel());
    row.kernel = text(kernel.name());
    row.layer = text(instruction.location());
    row.implementation = text(kernel.implementation());
  }
  return row;
}

void add(KernelRow &sum, const KernelRow &row) {
  sum.seconds += row.seconds;
  sum.best += row.best;
  sum.bytes += row.bytes;
  sum.bound += row.bound;
  for (const auto &[level, bytes] : row.levels)
    sum.levels[level] += bytes;
}

/// Where most bytes lie.
std::string levelOf(const KernelRow &row) {
  auto largest =
      std::ranges::max_element(row.levels, {}, [](const auto &level) { return level.second; });
  return largest != row.levels.end() && largest->second > 0 ? largest->first : "-";
}

std::string lineOf(const KernelRow &row, const std::string &launches) {
  return format("%-22.22s%-24.24s%-18.18s%6s", row.kernel.c_str(), row.layer.c_str(),
                row.kind.c_str(), launches.c_str()) +
         cell(row.bytes * 1e-6, "%.2f") + format("%7s", levelOf(row).c_str()) +
         cell(1e3 * row.seconds, "%.3f") + cell(1e3 * row.best, "%.3f") +
         cell(1e3 * row.bound, "%.3f") +
         cell(row.best > 0 ? 100 * row.bound / row.best : 0, "%.0f%%") +
         format("%10.3f", 1e3 * (row.best - row.bound));
}

} // namespace

KernelTable::KernelTable(const Artifact &artifact, const artifact::Program &program,
                         const MeasuredStep &mean, const MeasuredStep &best,
                         const std::vector<InstructionBound> &bounds) {
  for (size_t i = 0; i < bounds.size(); ++i) {
    const InstructionBound &bound = bounds[i];
    if (bound.kind.empty())
      continue;
    const auto &instruction = *program.instructions()->Get(static_cast<unsigned>(i));
    KernelRow row = rowOf(artifact, instruction, bound.kind);
    row.seconds = mean.instructions[i];
    row.best = best.instructions[i];
    row.bytes = bound.bytes;
    row.bound = bound.bound;
    row.levels = bound.levels;
    auto same = std::ranges::find(rows, row.kernel, &KernelRow::kernel);
    if (same == rows.end())
      same = rows.insert(rows.end(), std::move(row));
    else
      add(*same, row);
    same->instructions.push_back(i);
  }
  std::ranges::sort(rows, std::greater(),
                    [](const KernelRow &row) { return row.best - row.bound; });
}

std::vector<std::string> KernelTable::lines(size_t most) const {
  std::vector<std::string> lines{
      "kernel                first layer             kind               count        MB  level"
      "        ms   best ms  bound ms  of bound   over ms"};
  most = std::min(most, rows.size());
  for (size_t i = 0; i < most; ++i)
    lines.push_back(lineOf(rows[i], std::to_string(rows[i].instructions.size())));
  if (most == rows.size())
    return lines;
  KernelRow rest;
  size_t launches = 0;
  for (size_t i = most; i < rows.size(); ++i) {
    add(rest, rows[i]);
    launches += rows[i].instructions.size();
  }
  rest.kernel = std::to_string(rows.size() - most) + " others";
  lines.push_back(lineOf(rest, std::to_string(launches)));
  return lines;
}

void KernelTable::addTo(nlohmann::ordered_json &record) const {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const KernelRow &row : rows)
    kernels.push_back({{"kernel", row.kernel},
                       {"layer", row.layer},
                       {"kind", row.kind},
                       {"implementation", row.implementation},
                       {"instructions", row.instructions},
                       {"bytes", row.bytes},
                       {"level", levelOf(row)},
                       {"ms", 1e3 * row.seconds},
                       {"best_ms", 1e3 * row.best},
                       {"bound_ms", 1e3 * row.bound}});
  record["profile.kernels"] = kernels;
}

} // namespace dlc::rt
