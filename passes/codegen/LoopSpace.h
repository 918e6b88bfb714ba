// Where the elements of tensors lie over the loops of a nest: one loop per dimension and block of a
// layout, coordinates of an element as linear forms over them, and its address in a memory of any
// layout.
#pragma once

#include "dialects/NN/NN.h"
#include "passes/codegen/LinearForm.h"

namespace dlc {

/// One form per dimension of a tensor.
using Coordinates = llvm::SmallVector<LinearForm>;

/// The physical loops of a tensor type, and its coordinates over them.
struct LoopSpace {
  llvm::SmallVector<int64_t> extents;
  Coordinates coordinates;
};
LoopSpace spaceOf(mlir::RankedTensorType type);

/// Extent of a dimension in memory.
int64_t paddedExtent(mlir::RankedTensorType type, const rt::Layout &layout, int64_t dim);

/// Address of a tensor's element; nothing where blocks make it nonlinear.
std::optional<LinearForm> addressOf(mlir::RankedTensorType type, const Coordinates &coordinates,
                                    llvm::ArrayRef<int64_t> extents);
/// The same, linear or not.
mlir::AffineExpr addressExpressionOf(mlir::RankedTensorType type, const Coordinates &coordinates);

/// Bounds that coordinates may violate, on the extents that `extentOf` gives.
llvm::SmallVector<Bound> boundsOf(const Coordinates &coordinates, llvm::ArrayRef<int64_t> extents,
                                  llvm::function_ref<int64_t(int64_t)> extentOf);

} // namespace dlc
