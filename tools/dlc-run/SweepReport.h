// What a sweep of benchmarks found, as a table, CSV, JSON and a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dlc::run {

struct SweepRow {
  int64_t ranks = 1, batch = 1; // per rank
  double rate = 0;              // images a second, of all ranks
  double stepMilliseconds = 0, forwardMilliseconds = 0, backwardMilliseconds = 0;
  double exposedMilliseconds = 0;
  double wireBytes = 0;      // that a rank sends in a step
  uint64_t plannedBytes = 0; // per rank
  double peerRate = 0;       // of --peers, as `rate`
};

enum class SweepKind : uint8_t { Batches, WeakScaling, StrongScaling };

struct Sweep {
  std::string model;
  SweepKind kind = SweepKind::Batches;
  unsigned threads = 0; // per rank; 0: as each run chose
  bool hasPeers = false;
  std::vector<SweepRow> rows;

  /// Images a second against those of the first row.
  double speedUp(const SweepRow &row) const { return row.rate / rows.front().rate; }
  /// Images a second and rank against those of the first row.
  double efficiency(const SweepRow &row) const;
};

std::string sweepTable(const Sweep &sweep);
std::string sweepCsv(const Sweep &sweep);
/// One object: model, sweep, threads, rows.
std::string sweepJson(const Sweep &sweep);
/// SVG: images a second over ranks, measured and ideal, with efficiency and the step's time; over
/// batches with the step's time and memory. Peers are a line beside the measured one.
std::string sweepPicture(const Sweep &sweep);

} // namespace dlc::run
