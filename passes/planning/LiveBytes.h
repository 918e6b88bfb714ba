// Transient memory of a program at the schedule stage, before its buffers exist.
//
// Planning of kernels and recomputation judge by it; dlc-plan-memory has the last word on the same
// sharing of memory (BufferSharing), with the instructions in their final order.
#pragma once

#include "passes/planning/BufferSharing.h"

namespace dlc {

/// Bytes of the transient tensors that are live while each op of a program runs, and of the
/// workspaces of kernels that are planned already. Variables, inputs and gradients have memory of
/// their own.
class LiveBytes {
public:
  explicit LiveBytes(mlir::Block &block);

  uint64_t at(mlir::Operation *op) const { return bytes.lookup(op); }
  uint64_t peak() const { return most; }
  /// The first op at which the peak is reached, null in a program without tensors.
  mlir::Operation *peakOp() const { return atMost; }
  /// Bytes of the memory of an op's operands that is free again at the peak.
  uint64_t releasedAtPeak(mlir::Operation *op) const;
  BufferSharing::Memory memoryOf(mlir::Value value) const { return sharing.memoryOf(value); }

private:
  BufferSharing sharing;
  uint64_t most = 0;
  mlir::Operation *atMost = nullptr;
  llvm::DenseMap<mlir::Operation *, uint64_t> bytes;
};

/// True for gradients, and for what becomes the value of a variable.
bool hasOwnPlace(mlir::Value value);

/// Bytes of all variables, slots and copies: what a plan holds besides the peak of a program.
uint64_t variableBytes(nn::ModelOp model);

} // namespace dlc
