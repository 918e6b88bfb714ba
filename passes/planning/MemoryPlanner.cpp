// Best fit: each buffer goes into the smallest gap between the already placed buffers that are live
// at the same time and is large enough (lowest offset on ties). Buffers come from the largest to
// the smallest (Pisarchyk, Lee 2020, "Efficient memory management for deep neural net inference",
// greedy by size). Where that leaves holes, the buffers that are live at the peak come first, on a
// stack whose top is free first: then the peak has no holes, and later buffers mostly find room.
// Where that leaves holes, too, they come in order of time. Then, some times and while more than a
// hundredth is holes, what the best order put on top comes first.

#include "passes/planning/MemoryPlanner.h"

#include "runtime/artifact/Align.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace {
struct Placed {
  int64_t offset, bytes, begin, end;
};

/// Offset of the smallest sufficient gap among the placed buffers that are live together with
/// `buffer`.
int64_t bestFit(const std::vector<Placed> &byOffset, const dlc::BufferInterval &buffer,
                int64_t bytes) {
  int64_t best = -1, bestGap = std::numeric_limits<int64_t>::max(), reached = 0;
  for (const Placed &other : byOffset) {
    if (other.end < buffer.begin || other.begin > buffer.end)
      continue;
    int64_t gap = other.offset - reached;
    if (gap >= bytes && gap < bestGap) {
      best = reached;
      bestGap = gap;
    }
    reached = std::max(reached, other.offset + other.bytes);
  }
  return best >= 0 ? best : reached;
}

/// The most bytes that are live at one time, and the first such time.
struct Peak {
  int64_t bytes = 0, time = 0;
};

Peak findPeak(const std::vector<dlc::BufferInterval> &buffers, int64_t alignment) {
  std::map<int64_t, int64_t> change;
  for (const dlc::BufferInterval &buffer : buffers) {
    int64_t bytes = dlc::rt::alignUp(buffer.bytes, alignment);
    change[buffer.begin] += bytes;
    change[buffer.end + 1] -= bytes;
  }
  Peak peak;
  int64_t live = 0;
  for (auto [time, delta] : change)
    if ((live += delta) > peak.bytes)
      peak = {live, time};
  return peak;
}

/// Places buffers in the given order.
dlc::MemoryPlan place(const std::vector<dlc::BufferInterval> &buffers,
                      const std::vector<size_t> &order, int64_t alignment) {
  dlc::MemoryPlan plan;
  plan.offsets.resize(buffers.size());
  std::vector<Placed> byOffset;
  for (size_t i : order) {
    int64_t bytes = dlc::rt::alignUp(buffers[i].bytes, alignment);
    int64_t offset = bestFit(byOffset, buffers[i], bytes);
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    Placed placed{offset, bytes, buffers[i].begin, buffers[i].end};
    auto position =
        std::upper_bound(byOffset.begin(), byOffset.end(), placed,
                         [](const Placed &a, const Placed &b) { return a.offset < b.offset; });
    byOffset.insert(position, placed);
  }
  return plan;
}

/// What a buffer is placed by: the least first.
using Rank = std::tuple<bool, int64_t, int64_t>;

std::vector<size_t> sorted(const std::vector<dlc::BufferInterval> &buffers,
                           llvm::function_ref<Rank(const dlc::BufferInterval &)> rank) {
  std::vector<std::pair<Rank, size_t>> ranked;
  for (const dlc::BufferInterval &buffer : buffers)
    ranked.emplace_back(rank(buffer), ranked.size());
  std::ranges::sort(ranked);
  std::vector<size_t> order;
  for (const auto &[rankOfBuffer, i] : ranked)
    order.push_back(i);
  return order;
}
} // namespace

dlc::MemoryPlan dlc::planMemory(const std::vector<BufferInterval> &buffers, int64_t alignment) {
  Peak peak = findPeak(buffers, alignment);
  auto bySize = [](const BufferInterval &buffer) { return Rank(false, -buffer.bytes, 0); };
  auto fromPeak = [&](const BufferInterval &buffer) {
    bool isAtPeak = buffer.begin <= peak.time && peak.time <= buffer.end;
    return Rank(!isAtPeak, isAtPeak ? -buffer.end : -buffer.bytes, 0);
  };
  auto byTime = [](const BufferInterval &buffer) { return Rank(false, buffer.begin, -buffer.end); };
  std::vector<size_t> order = sorted(buffers, bySize);
  MemoryPlan best = place(buffers, order, alignment);
  auto tryRank = [&](llvm::function_ref<Rank(const BufferInterval &)> rank) {
    if (best.bytes == peak.bytes)
      return;
    std::vector<size_t> other = sorted(buffers, rank);
    MemoryPlan plan = place(buffers, other, alignment);
    if (plan.bytes >= best.bytes)
      return;
    best = std::move(plan);
    order = std::move(other);
  };
  tryRank(fromPeak);
  tryRank(byTime);
  constexpr int tries = 16;
  MemoryPlan last = best;
  for (int i = 0; i < tries && best.bytes > peak.bytes + peak.bytes / 100; ++i) {
    auto top = std::ranges::max_element(
        order, {}, [&](size_t buffer) { return last.offsets[buffer] + buffers[buffer].bytes; });
    std::rotate(order.begin(), top, top + 1);
    last = place(buffers, order, alignment);
    if (last.bytes < best.bytes)
      best = last;
  }
  best.lowerBound = peak.bytes;
  return best;
}
