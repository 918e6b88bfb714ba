// Multiples: rounding up to one, and whether numbers lie at them.
#pragma once

#include <cstdint>

namespace dlc::rt {

/// The least multiple that is not below value, for values >= 0.
template <typename Integer> constexpr Integer alignUp(Integer value, Integer multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// True if the numbers of a FlatBuffers vector lie at multiples of their size, which its verifier
/// does not check. No numbers may lie anywhere.
template <typename Vector> bool isAligned(const Vector &numbers) {
  return numbers.size() == 0 ||
         reinterpret_cast<uintptr_t>(numbers.Data()) % sizeof(typename Vector::value_type) == 0;
}

} // namespace dlc::rt
