// What a machine makes of a loop: sizes that the planning of generated kernels takes from the
// target. The defaults are those of CPUs with vectors of up to 16 f32.
#pragma once

#include <cstdint>

namespace dlc::rt {

struct LoopLimits {
  // Elements of an item: 32 KB of f32, so that an operand or two stay in the first-level cache.
  int64_t itemElements = 8192;
  // Below this, decoding the item number would show.
  int64_t leastItemElements = 512;
  // Inner extents are kept multiples of it where possible.
  int64_t vectorLanes = 16;
  // Items of a large reduction: enough for many threads to share.
  int64_t mostPartials = 128;
  // What a thread takes at a time is so many bytes at least, and one part in so many at least.
  int64_t chunkBytes = 128 * 1024;
  int64_t mostChunks = 512;
  // From this many kept elements on, a reduction enumerates those and needs no partial sums.
  int64_t manyKept = 4096;

  // Bytes that move in the time of one operation on an element, and of one exponential.
  double bytesPerOperation = 0.25;
  double bytesPerFunction = 5;
};

} // namespace dlc::rt
