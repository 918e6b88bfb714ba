// Rounding up to a multiple.
#pragma once

namespace dlc::rt {

/// The least multiple that is not below value, for values >= 0.
template <typename Integer> constexpr Integer alignUp(Integer value, Integer multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

} // namespace dlc::rt
