// Best fit: each buffer goes into the smallest gap between the already placed buffers that are live
// at the same time and is large enough (lowest offset on ties). Buffers come from the largest to
// the smallest (Pisarchyk, Lee 2020, "Efficient memory management for deep neural net inference",
// greedy by size). Where that leaves holes, the buffers that are live at the peak come first, on a
// stack whose top is free first: then the peak has no holes, and later buffers mostly find room.

#include "passes/planning/MemoryPlanner.h"

#include "runtime/artifact/Align.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
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

/// Fills in offsets and size of a plan, buffer by buffer in the given order.
void place(const std::vector<dlc::BufferInterval> &buffers, const std::vector<size_t> &order,
           int64_t alignment, dlc::MemoryPlan &plan) {
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
}
} // namespace

dlc::MemoryPlan dlc::planMemory(const std::vector<BufferInterval> &buffers, int64_t alignment) {
  Peak peak = findPeak(buffers, alignment);
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(-buffers[a].bytes, a) < std::tuple(-buffers[b].bytes, b);
  });
  MemoryPlan bySize, fromPeak;
  bySize.lowerBound = fromPeak.lowerBound = peak.bytes;
  place(buffers, order, alignment, bySize);
  if (bySize.bytes == peak.bytes)
    return bySize;
  auto key = [&](size_t i) {
    const BufferInterval &buffer = buffers[i];
    bool isAtPeak = buffer.begin <= peak.time && peak.time <= buffer.end;
    return std::tuple(!isAtPeak, isAtPeak ? -buffer.end : -buffer.bytes, i);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  place(buffers, order, alignment, fromPeak);
  return fromPeak.bytes < bySize.bytes ? fromPeak : bySize;
}
