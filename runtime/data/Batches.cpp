#include "runtime/data/Batches.h"

#include "runtime/artifact/Error.h"
#include "runtime/core/CeilDiv.h"
#include "runtime/core/Philox.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dlc::rt {

std::vector<int64_t> permutation(int64_t count, uint64_t seed, std::string_view stream,
                                 uint32_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  uint32_t streamHash = randomStream(stream);
  for (size_t i = order.size(); i > 1; --i) { // Fisher and Yates
    std::array<uint32_t, 4> bits =
        philox(seed, {static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32), streamHash, epoch});
    uint64_t draw = uint64_t{bits[0]} << 32 | bits[1];
    auto other = static_cast<size_t>(static_cast<unsigned __int128>(draw) * i >> 64);
    std::swap(order[i - 1], order[other]);
  }
  return order;
}

Split splitSamples(int64_t count, double fraction, uint64_t seed) {
  std::vector<int64_t> order = permutation(count, seed, "data.validation", 0);
  auto held = static_cast<ptrdiff_t>(std::llround(fraction * static_cast<double>(count)));
  Split split{{order.begin() + held, order.end()}, {order.begin(), order.begin() + held}};
  std::sort(split.training.begin(), split.training.end());
  std::sort(split.validation.begin(), split.validation.end());
  return split;
}

BatchPlan::BatchPlan(std::vector<int64_t> order, const RankBatch &shape, int64_t steps, bool wraps)
    : order(std::move(order)), shape(shape), count(steps), wraps(wraps) {
  if (this->order.empty())
    throw Error(ErrorCode::BadInput, "there are no samples to take batches from");
}

BatchPlan BatchPlan::training(const std::vector<int64_t> &samples, const RankBatch &shape,
                              uint64_t seed, uint32_t epoch, bool shuffle, int64_t stepsPerEpoch) {
  auto n = static_cast<int64_t>(samples.size());
  std::vector<int64_t> order = samples;
  if (shuffle) {
    std::vector<int64_t> positions = permutation(n, seed, "data.shuffle", epoch);
    std::transform(positions.begin(), positions.end(), order.begin(),
                   [&](int64_t position) { return samples[static_cast<size_t>(position)]; });
  }
  return BatchPlan(std::move(order), shape,
                   stepsPerEpoch ? stepsPerEpoch : ceilDiv(n, shape.global()), true);
}

BatchPlan BatchPlan::evaluation(std::vector<int64_t> samples, const RankBatch &shape) {
  auto n = static_cast<int64_t>(samples.size());
  return BatchPlan(std::move(samples), shape, ceilDiv(n, shape.global()), false);
}

Batch BatchPlan::at(int64_t number) const {
  auto n = static_cast<int64_t>(order.size());
  int64_t step = number / (shape.pieces * shape.rounds), piece = number % shape.pieces;
  int64_t first = step * shape.global() + shape.rank * shape.perRank() + piece * shape.batch;
  Batch batch;
  batch.valid = wraps ? shape.batch : std::clamp<int64_t>(n - first, 0, shape.batch);
  for (int64_t row = 0; row < shape.batch; ++row) {
    int64_t position = wraps ? first + row : std::min(first + row, n - 1);
    batch.samples.push_back(order[static_cast<size_t>(position % n)]);
    batch.positions.push_back(position);
  }
  return batch;
}

} // namespace dlc::rt
