// How a message of an all-reduce is cut: slice r belongs to rank r.
//
// Slices have equal length, a multiple of 16 elements (one cache line of f32); the last ones may be
// shorter or empty.
#pragma once

#include <algorithm>
#include <cstddef>

namespace dlc::rt {

struct Slice {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

inline Slice sliceOf(size_t elements, int ranks, int rank) {
  constexpr size_t unit = 16;
  auto count = static_cast<size_t>(ranks);
  size_t length = ((elements + count - 1) / count + unit - 1) / unit * unit;
  size_t begin = std::min(elements, length * static_cast<size_t>(rank));
  return {begin, std::min(elements, begin + length)};
}

} // namespace dlc::rt
