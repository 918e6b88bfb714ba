// Which gradients travel together.
//
// Gradients come in the order in which backward compute produces them, and buckets are filled in
// that order, so that a bucket can leave as soon as its last gradient is ready. A gradient that is
// as large as a bucket travels alone; tiny ones around it share a message. The last bucket is
// small: nothing is left to hide it behind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dlc {

/// One tensor to be reduced over ranks.
struct Reduction {
  uint64_t bytes = 0;                 // in its bucket (BucketLayout::sliceBytes)
  unsigned format = 0;                // only tensors of one format share a bucket
  std::vector<unsigned> dependencies; // earlier reductions whose results this one needs, directly
                                      // or by way of others
};

struct BucketLimits {
  uint64_t bytes;     // of an ordinary bucket
  uint64_t lastBytes; // of the last one
};

/// Numbers of reductions, in order. A bucket exceeds its limit only where it is a single tensor. No
/// reduction up to a bucket's last one needs the result of one of the bucket's: what a bucket waits
/// for does not depend on it.
struct Bucket {
  std::vector<unsigned> members;
};
/// In the order of their last members.
std::vector<Bucket> planBuckets(std::span<const Reduction> reductions, const BucketLimits &limits);

} // namespace dlc
