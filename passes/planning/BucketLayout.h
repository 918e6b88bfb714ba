// Where the tensors of one message lie in their bucket, and how long the message is.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ValueRange.h"

#include <cstdint>

namespace dlc {

/// Tensors side by side, in the order in which they are added. All have the bucket's element type,
/// in which they are summed.
class BucketLayout {
public:
  explicit BucketLayout(mlir::Type element) : element(element) {}
  /// A bucket of tensors that are added as they are.
  static BucketLayout of(mlir::ValueRange tensors);

  /// What a tensor takes: it begins on the alignment of buffers, and so does the next one.
  static int64_t sliceBytes(int64_t tensorBytes);
  static bool canBegin(int64_t offset) { return sliceBytes(offset) == offset; }

  /// Places a tensor behind the others; returns its offset in bytes.
  int64_t add(mlir::RankedTensorType tensor);
  /// The same where variables lie beside each other as the tensors do (exec::rangeElements).
  int64_t addToRange(mlir::RankedTensorType tensor);
  /// Moves the end, for a range that is longer than its tensors.
  void extendTo(int64_t count) { elements = std::max(elements, count); }

  /// Padding included.
  int64_t elementCount() const { return elements; }
  /// The whole bucket as a tensor.
  mlir::RankedTensorType type() const { return mlir::RankedTensorType::get(elements, element); }
  /// Bytes on the wire, where messages may hold another type than the bucket.
  uint64_t messageBytes(mlir::Type wire) const;

private:
  int64_t place(int64_t count);

  mlir::Type element;
  int64_t elements = 0;
};

/// True if a tensor can be computed in place in its bucket: by one kernel, and for nobody else.
bool isOwnResult(mlir::Value value);

} // namespace dlc
