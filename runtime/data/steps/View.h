// Elements of an array as a sample has them: cut, mirrored, turned, with zeros where a cut reaches
// beyond, some of them replaced. Moving them changes the view alone; they are read when they are
// needed.
#pragma once

#include "runtime/data/steps/ElementType.h"
#include "runtime/data/steps/Extents.h"

#include <array>
#include <memory>

namespace dlc::rt {

/// Of each channel, what is subtracted, and what the difference is multiplied with, in f32.
struct Scaling {
  std::vector<float> shift, scale;

  float applied(float value, size_t channel) const {
    return (value - shift[channel]) * scale[channel];
  }
};

struct View {
  struct Axis {
    int64_t extent;
    int64_t stride;    // in elements
    int64_t low, high; // of the indices from low to high - 1 the array has elements
  };

  /// Of an element of a volume of channels, or an image of fewer axes.
  using Indices = std::array<int64_t, 4>;
  /// What stands in place of an element, as it is read.
  struct Spot {
    Indices at;
    float value;
  };

  ElementType type = ElementType::F32;
  std::span<const std::byte> bytes = {}; // of the array; not aligned
  std::shared_ptr<const void> owner = nullptr;
  int64_t first = 0; // the element of indices 0, which need not be there
  std::vector<Axis> axes = {};
  bool isMask = false;  // of 0 and 255, which stands for 1
  bool isWhole = false; // all of a file's sample, as it lies
  bool isHeld = false;  // the array, by its source, for a device to gather from
  /// Of what the array has; zeros beside it stay. Null: the elements are as they are.
  std::shared_ptr<const Scaling> scaling = nullptr;
  std::vector<Spot> spots = {}; // each at a place of its own

  /// Of all of a row-major array.
  template <typename T> static View of(std::vector<T> values, const Extents &shape);

  Extents shape() const;
  size_t elements() const;
  /// False if a cut has reached beyond the array.
  bool isFull() const;
  /// True if none of its elements is one of the array.
  bool isEmpty() const;
  /// Where the indices lie in row-major order.
  size_t offsetOf(std::span<const int64_t> at) const;
  /// Zeros of this shape, without what is replaced.
  View zeros() const;
  /// Subtracts and multiplies when the elements are read; what is replaced, at once.
  void scale(Scaling by);

  /// The box from `corner` on, of `size`, along the axes behind the first.
  void cut(std::span<const int64_t> corner, std::span<const int64_t> size);
  void mirror(size_t dim);
  /// Counterclockwise in the plane of the last two axes, as numpy.rot90.
  void quarterTurn();

  /// What read gives as float of the element at the indices, but for spots.
  float element(std::span<const int64_t> at) const;
  /// Writes the elements in row-major order, as bytes of T: float, uint8_t or uint16_t, which hold
  /// them. Of scaled ones, float.
  template <typename T> void read(std::span<std::byte> out) const;
};

} // namespace dlc::rt
