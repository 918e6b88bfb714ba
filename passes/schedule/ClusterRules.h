// Which ops clusters hold, and which ops they copy instead of reading their results.
#pragma once

#include "passes/planning/TargetKernels.h"

#include "llvm/ADT/DenseSet.h"

namespace dlc {

class ClusterRules {
public:
  /// For each op of `block` that a library may run, too, asks whether generated code costs less.
  ClusterRules(mlir::Block &block, TargetKernels &kernels);

  /// True if a cluster may go on with the results of its reductions.
  bool knowsEpilogues() const { return epilogues; }
  /// True if generated code runs the op together with others.
  bool isClusterOp(mlir::Operation *op) const;
  /// True if a cluster copies the op instead of reading its result.
  bool isCopied(mlir::Operation *op) const;
  /// Users of a value or of an op's results, those of copied casts in place of the casts.
  llvm::SmallVector<mlir::Operation *> usersThroughCasts(mlir::Value value) const;
  llvm::SmallVector<mlir::Operation *> usersThroughCasts(mlir::Operation *op) const;
  /// True if something other than a cluster reads the result of an op, or a cluster that gathers
  /// from it.
  bool needsMemory(mlir::Operation *op) const;

private:
  bool isGatheredFrom(mlir::Operation *op) const;
  bool isCopiedCast(mlir::Operation *op) const;

  bool epilogues;
  llvm::DenseSet<mlir::Operation *> generated; // of those that have a request
};

} // namespace dlc
