// First the last bucket is cut off from the end, then the others are filled from the front. A
// bucket that is smaller than the last one stays open when a gradient that travels alone comes by.

#include "passes/planning/BucketPlanner.h"

#include <algorithm>

using namespace dlc;

/// True if `reduction` needs the result of the one numbered `first` or of a later one.
static bool dependsOnAny(const Reduction &reduction, unsigned first) {
  return std::ranges::any_of(reduction.dependencies,
                             [&](unsigned dependency) { return dependency >= first; });
}

/// True if `reduction` may join the run that begins at `begin`.
static bool canJoin(const Reduction &reduction, const Reduction &first, unsigned begin) {
  return reduction.format == first.format && !dependsOnAny(reduction, begin);
}

/// Start of the longest run that ends with the last reduction and fits the limit.
static unsigned beginOfLast(std::span<const Reduction> reductions, uint64_t limit) {
  auto begin = static_cast<unsigned>(reductions.size()) - 1;
  uint64_t bytes = reductions[begin].bytes;
  while (begin > 0) {
    bytes += reductions[begin - 1].bytes;
    bool fits = bytes <= limit &&
                std::ranges::all_of(reductions.subspan(begin), [&](const Reduction &member) {
                  return canJoin(member, reductions[begin - 1], begin - 1);
                });
    if (!fits)
      break;
    --begin;
  }
  return begin;
}

std::vector<Bucket> dlc::planBuckets(std::span<const Reduction> reductions,
                                     const BucketLimits &limits) {
  std::vector<Bucket> buckets;
  if (reductions.empty())
    return buckets;
  unsigned last = beginOfLast(reductions, std::min(limits.lastBytes, limits.bytes));
  Bucket open; // what may still get members
  uint64_t bytes = 0;
  auto close = [&] {
    if (!open.members.empty())
      buckets.push_back(std::exchange(open, {}));
    bytes = 0;
  };
  for (unsigned i = 0; i < last; ++i) {
    uint64_t slice = reductions[i].bytes;
    bool isLarge = slice >= limits.bytes;
    if (!open.members.empty()) {
      unsigned first = open.members.front();
      bool isDone = isLarge ? bytes > limits.lastBytes
                            : bytes + slice > limits.bytes ||
                                  reductions[i].format != reductions[first].format;
      if (isDone || dependsOnAny(reductions[i], first))
        close();
    }
    if (isLarge) {
      buckets.push_back({{i}});
    } else {
      open.members.push_back(i);
      bytes += slice;
    }
  }
  close();
  Bucket &tail = buckets.emplace_back();
  for (unsigned i = last; i < reductions.size(); ++i)
    tail.members.push_back(i);
  std::ranges::sort(buckets, {}, [](const Bucket &bucket) { return bucket.members.back(); });
  return buckets;
}
