// Writes logical rows into a tensor of any element type and physical layout.
//
// Invariant: only logical elements are written, so padding lanes keep the zeros that the arena
// starts with. Immutable; rows may be written from any thread.
#pragma once

#include "runtime/artifact/Layout.h"
#include "runtime/artifact/artifact_generated.h"
#include "runtime/data/steps/Sample.h"

#include <cstddef>
#include <span>
#include <vector>

namespace dlc::rt {

class TensorWriter {
public:
  /// `shape` is logical, rows along its first dimension. Throws Error(Artifact) for element types
  /// that inputs do not have.
  TensorWriter(artifact::DType dtype, std::vector<int64_t> shape, const Layout &layout);

  /// Elements of a row.
  int64_t rowElements() const { return elementsPerRow; }
  int64_t rows() const { return shape.empty() ? 1 : shape.front(); }
  size_t tensorBytes() const;
  /// True if rows of views, or of this one, are written where they lie as they are read.
  bool takesViews() const;
  bool takes(const View &view) const;
  /// `values` is the row in row-major order.
  void writeRow(int64_t row, std::span<const float> values, std::span<std::byte> tensor) const;
  /// The same of a sample, whose elements go where they belong as they are read, if they can.
  void writeRow(int64_t row, Sample &sample, std::span<std::byte> tensor) const;

private:
  template <typename T>
  void writeAs(int64_t row, std::span<const float> values, std::span<std::byte> tensor) const;

  artifact::DType dtype;
  std::vector<int64_t> shape;
  int64_t elementsPerRow = 1;
  int64_t physicalElements;
  bool isRowMajor = false;
  /// Offsets are separable: each dimension adds places[dim][index], since blocks never mix
  /// dimensions.
  std::vector<std::vector<int64_t>> places;
};

} // namespace dlc::rt
