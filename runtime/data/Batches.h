// Which samples a rank sees in which step.
//
// Everything follows from (seed, epoch, number of samples, ranks, batch): no communication, and the
// same global batches whatever rank asks. Rank r takes rows rB..(r+1)B of a global batch.
// Immutable; may be used from any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace dlc::rt {

/// Permutation of 0..count-1 drawn by Philox from (seed, stream, epoch).
std::vector<int64_t> permutation(int64_t count, uint64_t seed, std::string_view stream,
                                 uint32_t epoch);

struct Split {
  std::vector<int64_t> training, validation; // ascending
};

/// round(fraction * count) samples of a permutation keyed by the seed are for validation.
Split splitSamples(int64_t count, double fraction, uint64_t seed);

/// One rank's rows of one step, or a piece of them.
struct Batch {
  std::vector<int64_t> samples;   // always as many as the program's batch
  std::vector<int64_t> positions; // of these in the epoch, whatever the number of ranks
  int64_t valid = 0;              // rows from here on repeat a sample and do not count
};

struct RankBatch {
  int rank = 0;
  int ranks = 1;
  int64_t batch = 1;  // rows per rank, or per piece
  int64_t pieces = 1; // a rank's rows of a step come one piece after the other
  int64_t rounds = 1; // and all of them as often

  int64_t perRank() const { return batch * pieces; }
  int64_t global() const { return perRank() * ranks; }
};

/// The steps of one pass over samples.
class BatchPlan {
public:
  /// ceil(n / (B N)) full steps, or `stepsPerEpoch` if not 0, over a permutation keyed by (seed,
  /// epoch), or over the given order without `shuffle`; the last step wraps around to its start.
  static BatchPlan training(const std::vector<int64_t> &samples, const RankBatch &shape,
                            uint64_t seed, uint32_t epoch, bool shuffle, int64_t stepsPerEpoch);
  /// Every sample exactly once, in the given order; the last step is padded.
  static BatchPlan evaluation(std::vector<int64_t> samples, const RankBatch &shape);

  int64_t steps() const { return count; }
  /// All batches of the pass, and one of them; a step has as many as pieces in each round.
  int64_t batches() const { return count * shape.pieces * shape.rounds; }
  Batch at(int64_t batch) const;

private:
  BatchPlan(std::vector<int64_t> order, const RankBatch &shape, int64_t steps, bool wraps);

  std::vector<int64_t> order;
  RankBatch shape;
  int64_t count;
  bool wraps;
};

} // namespace dlc::rt
