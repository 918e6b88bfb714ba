// What a sweep of benchmarks found, as a table, CSV, JSON and a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dlc::run {

struct SweepRow {
  int64_t ranks = 1, batch = 1; // per rank
  double rate = 0;              // images a second, of all ranks
  double stepMilliseconds = 0, exposedMilliseconds = 0;
  uint64_t plannedBytes = 0; // per rank
};

enum class SweepKind : uint8_t { Batches, WeakScaling, StrongScaling };

struct Sweep {
  std::string model;
  SweepKind kind = SweepKind::Batches;
  unsigned threads = 0; // per rank; 0: as each run chose
  std::vector<SweepRow> rows;

  /// Images a second and rank against those of the first row.
  double efficiency(const SweepRow &row) const;
};

std::string sweepTable(const Sweep &sweep);
std::string sweepCsv(const Sweep &sweep);
/// One object: model, sweep, threads, rows.
std::string sweepJson(const Sweep &sweep);
/// SVG: images a second over ranks, measured and ideal, with efficiency and exposed all-reduces;
/// over batches with the step's time and memory.
std::string sweepPicture(const Sweep &sweep);

} // namespace dlc::run
