// Parts of a tensor along one axis, from which operators are put together.
#pragma once

#include "frontend/operators/Graph.h"

namespace dlc::fe {

/// More than any axis has.
inline constexpr int64_t maxElementsOfAxis = int64_t{1} << 30;

/// `count` elements of the axis, from `from` on.
mlir::Value sliceOf(Graph &graph, mlir::Value x, int64_t axis, int64_t from, int64_t count);
/// Tensors side by side along an axis.
mlir::Value joined(Graph &graph, llvm::ArrayRef<mlir::Value> parts, int64_t axis);
/// Elements 0, step, 2 step, ... of an axis.
mlir::Value everyNth(Graph &graph, mlir::Value x, int64_t axis, int64_t step);

} // namespace dlc::fe
