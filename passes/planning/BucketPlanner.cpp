// First the last bucket is cut off from the end, then the others are filled from the front. A
// bucket stays open when reductions of another format come by and, if it is smaller than the last
// one, a gradient that travels alone.

#include "passes/planning/BucketPlanner.h"

#include <algorithm>
#include <map>
#include <utility>

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

namespace {
/// Fills buckets from the front, at most one of each format at a time.
class BucketFiller {
public:
  BucketFiller(std::span<const Reduction> reductions, const BucketLimits &limits)
      : reductions(reductions), limits(limits), isOpen(reductions.size()) {}

  void add(unsigned number) {
    const Reduction &reduction = reductions[number];
    for (unsigned dependency : reduction.dependencies)
      if (isOpen[dependency])
        close(open[reductions[dependency].format]);
    Filling &filling = open[reduction.format];
    bool isLarge = reduction.bytes >= limits.bytes;
    if (isLarge ? filling.bytes > limits.lastBytes : filling.bytes + reduction.bytes > limits.bytes)
      close(filling);
    if (isLarge) {
      buckets.push_back({{number}});
      return;
    }
    filling.bucket.members.push_back(number);
    filling.bytes += reduction.bytes;
    isOpen[number] = true;
  }

  std::vector<Bucket> take() {
    for (auto &[format, filling] : open)
      close(filling);
    return std::move(buckets);
  }

private:
  struct Filling {
    Bucket bucket;
    uint64_t bytes = 0;
  };

  void close(Filling &filling) {
    if (filling.bucket.members.empty())
      return;
    for (unsigned member : filling.bucket.members)
      isOpen[member] = false;
    buckets.push_back(std::exchange(filling, {}).bucket);
  }

  std::span<const Reduction> reductions;
  const BucketLimits &limits;
  std::map<unsigned, Filling> open; // by format
  std::vector<bool> isOpen;         // by reduction: in a bucket that may get further members
  std::vector<Bucket> buckets;
};
} // namespace

std::vector<Bucket> dlc::planBuckets(std::span<const Reduction> reductions,
                                     const BucketLimits &limits) {
  if (reductions.empty())
    return {};
  unsigned last = beginOfLast(reductions, std::min(limits.lastBytes, limits.bytes));
  BucketFiller filler(reductions, limits);
  for (unsigned i = 0; i < last; ++i)
    filler.add(i);
  std::vector<Bucket> buckets = filler.take();
  Bucket &tail = buckets.emplace_back();
  for (unsigned i = last; i < reductions.size(); ++i)
    tail.members.push_back(i);
  std::ranges::sort(buckets, {}, [](const Bucket &bucket) { return bucket.members.back(); });
  return buckets;
}
