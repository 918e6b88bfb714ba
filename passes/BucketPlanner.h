// Which gradients travel together.
//
// Gradients come in the order in which backward compute produces them, and buckets are runs of that
// order, so that a bucket can leave as soon as its last gradient is ready. The last bucket is
// small: nothing is left to hide it behind.
#pragma once

#include "runtime/artifact/Align.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dlc {

/// Slices of a bucket start at multiples of this many bytes.
inline constexpr uint64_t bucketAlignment = 64;

inline uint64_t alignToSlice(uint64_t bytes) { return rt::alignUp(bytes, bucketAlignment); }

/// One tensor to be reduced over ranks.
struct Reduction {
  uint64_t bytes = 0;
  unsigned format = 0;                // only tensors of one format share a bucket
  std::vector<unsigned> dependencies; // earlier reductions whose results this one needs
};

struct BucketLimits {
  uint64_t bytes;     // of an ordinary bucket
  uint64_t lastBytes; // of the last one
};

/// Runs [begin, end) of the reductions, in order. A run exceeds its limit only where it is a single
/// tensor, and never holds two reductions of which one depends on the other.
struct Bucket {
  unsigned begin, end;
};
std::vector<Bucket> planBuckets(std::span<const Reduction> reductions, const BucketLimits &limits);

} // namespace dlc
