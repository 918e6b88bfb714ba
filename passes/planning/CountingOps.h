// What the backward pass needs of the whole batch, over all ranks, and depends on inputs alone.
//
// The count of a masked loss is such a sum. In a step of several micro-batches it is formed in
// passes of its own ahead of the first forward pass, so nothing else may run with it.
#pragma once

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseSet.h"

namespace dlc {

class CountingOps {
public:
  /// Of a program's block, before or after dlc-fuse and dlc-combine-all-reduces.
  explicit CountingOps(mlir::Block &block);

  /// True for such a collective and all that it needs.
  bool contains(mlir::Operation *op) const { return ops.contains(op); }

private:
  llvm::DenseSet<mlir::Operation *> ops;
};

} // namespace dlc
