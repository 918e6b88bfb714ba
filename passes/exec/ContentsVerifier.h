// Checks what each byte of an exec program's buffers holds when it is used.
#pragma once

#include "passes/exec/Liveness.h"
#include "runtime/artifact/OrderProof.h"
#include "runtime/artifact/WrittenRanges.h"

namespace dlc {

/// The bytes of a buffer or view in its arena.
rt::ArenaRange rangeOf(mlir::Value buffer);
/// True for a buffer of a variable that the host writes in each step.
bool isHostScalar(exec::BufferOp buffer, mlir::SymbolTable &symbols);

/// Every byte is written before it is read, by all kernels that write a part of it; a variable is
/// written once in a step, by what runs once in a step; what runs ahead of the forward pass depends
/// on inputs alone; what the host has taken stays as it is; and buckets hold as much as their
/// members.
class ContentsVerifier {
public:
  ContentsVerifier(exec::ProgramOp program, mlir::SymbolTable &symbols)
      : program(program), symbols(symbols) {}

  /// Fails with a diagnostic at the instruction.
  llvm::LogicalResult verify(const Liveness &liveness);

private:
  void findPadding();
  llvm::LogicalResult verifyMembers();
  llvm::LogicalResult verifyUse(mlir::Operation *op, mlir::Value operand, exec::Access access);
  void write(mlir::Operation *op, mlir::Value operand);

  exec::ProgramOp program;
  mlir::SymbolTable &symbols;
  llvm::DenseMap<mlir::Operation *, rt::WrittenRanges> written; // by exec.buffer
  llvm::DenseSet<mlir::Operation *> taken;                      // exec.buffers that the host has
  llvm::DenseSet<mlir::Operation *> ofPass; // exec.buffers that what does not count has written
};

} // namespace dlc
