// Where a thread is in the loops of a stage: the index of each loop, and linear forms over them.
#pragma once

#include "passes/codegen/ClusterPlan.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dlc {

/// Indices are i32; what does not fit into 32 bits, by its range over the loops, is computed in 64.
/// That of the innermost loop is its first lane's.
class LoopIndices {
public:
  LoopIndices(mlir::ImplicitLocOpBuilder &builder, const StagePlan &stage)
      : b(builder), stage(stage), extents(stage.extents()), indices(extents.size()) {}

  /// Decodes a number of iterations of these loops, the last one fastest, into their indices. Of
  /// the innermost loop, an iteration is so many lanes.
  void decode(mlir::Value number, llvm::ArrayRef<unsigned> loops, int64_t lanes);

  /// The value of a form for a lane, i32 or i64.
  mlir::Value valueOf(const LinearForm &form, int64_t lane);
  /// The address of a node in memory, in elements, or its coordinate, i32 or i64.
  mlir::Value placeOf(const ClusterNode &node, int64_t lane);
  /// Whether bounds hold for a lane; null if there are none.
  mlir::Value insideOf(llvm::ArrayRef<Bound> bounds, int64_t lane);
  /// Whether the item is the last one along a loop of which that one is shorter.
  mlir::Value isLastItem(unsigned loop);
  /// Whether the index of a loop with a shorter last item exists; null if there is no such loop.
  mlir::Value exists();

private:
  mlir::Value addressOf(mlir::AffineExpr address, int64_t lane);
  mlir::Value constant(mlir::Type type, int64_t value);
  mlir::Value indexOf(unsigned loop, mlir::Type type, int64_t lane);

  mlir::ImplicitLocOpBuilder &b;
  const StagePlan &stage;
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<mlir::Value> indices;
};

} // namespace dlc
