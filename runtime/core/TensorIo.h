// Tensors between their physical form (dtype and layout) and logical row-major f32.
//
// The one routine through which variables, checkpoints and outputs pass, whatever the layout.
// Padding lanes are written as zero. Called by the compute thread.
#pragma once

#include "runtime/artifact/LayoutIo.h"

#include <cstddef>
#include <functional>
#include <span>

namespace dlc::rt {

/// A physical tensor's type.
struct PhysicalType {
  artifact::DType dtype;
  std::vector<int64_t> shape;
  Layout layout;

  /// The type belongs to a verified artifact.
  explicit PhysicalType(const artifact::TensorType &type)
      : dtype(type.dtype()), shape(readShape(type)), layout(*readLayout(type)) {}
  PhysicalType(artifact::DType dtype, std::vector<int64_t> shape, Layout layout)
      : dtype(dtype), shape(std::move(shape)), layout(std::move(layout)) {}

  size_t logicalElements() const {
    int64_t elements = 1;
    for (int64_t extent : shape)
      elements *= extent;
    return static_cast<size_t>(elements);
  }
  size_t bytes() const { return physicalBytes(dtype, shape, layout); }
};

/// Sets values to the logical elements first, first + 1, ... Called by every thread of the team.
using FillValues = std::function<void(size_t first, std::span<float> values)>;

/// `physical` has bytes(), `values` logicalElements(). Integers are rounded to nearest. The whole
/// team works, each thread on elements of its own.
void writeTensor(const PhysicalType &type, const FillValues &fill, std::span<std::byte> physical);
void writeTensor(const PhysicalType &type, std::span<const float> values,
                 std::span<std::byte> physical);
void readTensor(const PhysicalType &type, std::span<const std::byte> physical,
                std::span<float> values);

/// Narrows elements as they lie: f32 in `from` to `type` in `into`.
void narrow(std::span<const float> from, artifact::DType type, std::span<std::byte> into);

/// One element.
double readScalar(artifact::DType dtype, const std::byte *at);
void writeScalar(artifact::DType dtype, std::byte *at, double value);

} // namespace dlc::rt
