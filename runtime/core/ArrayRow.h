// A row of an input as elements of an array of the host's: cut, mirrored, turned, scaled, with
// zeros where a cut reaches beyond, some of them replaced.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace dlc::rt {

struct ArrayRow {
  struct Axis {
    int64_t extent = 1;
    int64_t stride = 0;        // in elements
    int64_t low = 0, high = 1; // of the indices from low to high - 1 the array has elements
  };

  std::span<const std::byte> array = {}; // empty: the row is staged
  std::shared_ptr<const void> owner = nullptr;
  artifact::DType type = artifact::DType::U8; // or U16
  bool isMask = false;                        // of 0 and others, which stand for 1
  int64_t first = 0;                          // the element of indices 0, which need not be there
  std::array<Axis, 4> axes = {};              // channels, then the others, the last one innermost
  /// If set, what the array has becomes (x - shift) * scale of its channel in f32.
  bool isScaled = false;
  static constexpr size_t mostScaled = 4; // channels
  std::array<float, mostScaled> shift = {}, scale = {};

  /// Stands in place of an element of the row, which has this number in it; one at most for each.
  struct Spot {
    uint64_t element;
    float value; // that the input's type holds
  };
  std::vector<Spot> spots = {};
  /// A device has room for so many, twice the 0.198 % that blind spots are unless a model says
  /// otherwise; a row with more is staged.
  static size_t mostSpots(size_t rowElements) { return rowElements / 256 + 1; }

  bool isStaged() const { return array.empty(); }
};

} // namespace dlc::rt
