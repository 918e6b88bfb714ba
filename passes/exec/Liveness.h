// Live intervals of the buffers of an exec program.
//
// Shared by dlc-plan-memory, dlc-verify-exec and the exporter, so that all three mean the same by
// "live".
#pragma once

#include "dialects/Exec/Exec.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace dlc {

/// Instruction indices, both inclusive.
struct LiveInterval {
  int64_t begin;
  int64_t end;
};

class Liveness {
public:
  explicit Liveness(exec::ProgramOp program);

  llvm::ArrayRef<mlir::Operation *> instructions() const { return order; }
  /// Interval of every exec.buffer that an instruction touches, directly or through views. A bucket
  /// in flight lives until its wait; what the host reads lives to the end; an input lives from the
  /// start.
  const llvm::MapVector<mlir::Operation *, LiveInterval> &intervals() const { return live; }

private:
  void touch(mlir::Value buffer, int64_t at);

  llvm::SmallVector<mlir::Operation *> order;
  llvm::MapVector<mlir::Operation *, LiveInterval> live;
};

/// How an instruction uses each of its buffer operands.
llvm::SmallVector<exec::Access> accessesOf(mlir::Operation *instruction,
                                           mlir::SymbolTable &kernels);

} // namespace dlc
