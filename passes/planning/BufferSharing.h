// Which results of clusters lie in the memory of an operand that nobody reads afterwards. Clusters
// are planned before.
//
// The one place that decides this: the conversion to exec follows it, and planning of kernels
// judges workspaces by the memory that comes of it.
#pragma once

#include "dialects/NN/NN.h"

#include "llvm/ADT/MapVector.h"

namespace dlc {

class BufferSharing {
public:
  /// `hasOwnPlace` is true for results that are in no transient memory: variables, buckets.
  BufferSharing(mlir::Block &block, llvm::function_ref<bool(mlir::Value)> hasOwnPlace);

  /// The operand in whose memory the result is written, or null.
  mlir::Value operandSharedBy(mlir::OpResult result) const { return shared.lookup(result); }

  /// One transient memory: from the op that defines the owner to the last that reads it, or to the
  /// end of the program if that is null.
  struct Memory {
    mlir::Value owner;
    mlir::Operation *last;
  };
  /// In the order of the ops that define the owners.
  llvm::SmallVector<Memory> memories() const;
  /// The memory in which a value lies; without an owner if it is in no transient memory.
  Memory memoryOf(mlir::Value value) const;

private:
  void place(mlir::Value value, mlir::Value owner);
  mlir::Value findOperand(nn::FusedOp op, unsigned result) const;

  llvm::DenseMap<mlir::Value, mlir::Value> owners; // of values in transient memory
  llvm::DenseSet<mlir::Value> views;
  llvm::MapVector<mlir::Value, mlir::Operation *> lastUse; // by owner; null: the end
  llvm::DenseMap<mlir::Value, mlir::Value> shared;
};

} // namespace dlc
