// The last bucket is cut off from the end first, then the rest is filled from the front.

#include "passes/BucketPlanner.h"

#include <algorithm>

using namespace dlc;

/// True if `reduction` may join the run that begins at `begin`.
static bool canJoin(const Reduction &reduction, const Reduction &first, unsigned begin) {
  return reduction.format == first.format &&
         std::ranges::none_of(reduction.dependencies,
                              [&](unsigned dependency) { return dependency >= begin; });
}

/// Start of the longest run that ends with the last reduction and fits the limit.
static unsigned beginOfLast(std::span<const Reduction> reductions, uint64_t limit) {
  auto begin = static_cast<unsigned>(reductions.size()) - 1;
  uint64_t bytes = alignToSlice(reductions[begin].bytes);
  while (begin > 0) {
    bytes += alignToSlice(reductions[begin - 1].bytes);
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
  uint64_t bytes = 0;
  for (unsigned i = 0; i < last; ++i) {
    uint64_t slice = alignToSlice(reductions[i].bytes);
    if (!buckets.empty() && bytes + slice <= limits.bytes &&
        canJoin(reductions[i], reductions[buckets.back().begin], buckets.back().begin)) {
      buckets.back().end = i + 1;
      bytes += slice;
    } else {
      buckets.push_back({i, i + 1});
      bytes = slice;
    }
  }
  buckets.push_back({last, static_cast<unsigned>(reductions.size())});
  return buckets;
}
