// Places buffers in an arena: best fit over live intervals.
//
// Plain data in, offsets out; knows nothing of IR. Invariant: buffers whose live intervals
// intersect never overlap in memory.
#pragma once

#include <cstdint>
#include <vector>

namespace dlc {

/// A buffer to place. It is live from instruction `begin` to `end`, both inclusive.
struct BufferInterval {
  int64_t bytes = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets; // per buffer, multiples of the alignment
  int64_t bytes = 0;            // size of the arena
  int64_t lowerBound = 0;       // most bytes live at one instruction: no plan needs less
};

/// Plans an arena. Sizes are rounded up to `alignment`.
MemoryPlan planMemory(const std::vector<BufferInterval> &buffers, int64_t alignment);

} // namespace dlc
