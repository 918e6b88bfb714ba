// What a machine makes of a loop: sizes that the planning of generated kernels takes from the
// target. No field has a default: a target states them all.
//
// Invariant: an item has room for a vector, and all numbers are positive.
#pragma once

#include <cstdint>

namespace dlc::rt {

struct LoopLimits {
  /// Elements of an item at most: an operand or two stay in the first-level cache.
  int64_t itemElements;
  /// Elements: decoding the number of a smaller item would show.
  int64_t leastItemElements;
  /// Lanes of f32: inner extents are kept multiples of it where possible.
  int64_t vectorLanes;
  /// Items of a large reduction, each with a partial result: enough for many threads to share.
  int64_t mostPartials;
  /// Bytes that a thread takes at a time at least.
  int64_t chunkBytes;
  /// Chunks of a kernel at most.
  int64_t mostChunks;
  /// Elements: from so many that are kept on, a reduction enumerates those and needs no partial
  /// results.
  int64_t manyKept;

  /// Bytes that move in the time of one operation on an element.
  double bytesPerOperation;
  /// Bytes that move in the time of one exponential.
  double bytesPerFunction;
};

} // namespace dlc::rt
