// Checks what adds up buckets over the micro-batches of a step.
#pragma once

#include "dialects/Exec/Exec.h"

#include "llvm/ADT/MapVector.h"

namespace dlc {

/// A sum is a buffer of the arena of sums that one exec.accumulate alone uses, by a generated
/// kernel that works in place, and nothing else uses the bucket from there to its start. Behind the
/// wait for a collective of phase count its bucket is recalled from that sum, before any other use;
/// behind others none is.
class SumVerifier {
public:
  explicit SumVerifier(mlir::SymbolTable &symbols) : symbols(symbols) {}

  /// Both fail with a diagnostic at the instruction. Instructions come in program order.
  llvm::LogicalResult verify(mlir::Operation *instruction);
  llvm::LogicalResult finish();

private:
  llvm::LogicalResult verifyOperands(mlir::Operation *instruction);
  llvm::LogicalResult verifyAccumulate(exec::AccumulateOp add);
  llvm::LogicalResult verifyStart(exec::StartOp start);
  llvm::LogicalResult verifyWait(exec::WaitOp wait);
  llvm::LogicalResult verifyRecall(exec::RecallOp recall);

  mlir::SymbolTable &symbols;
  llvm::MapVector<mlir::Operation *, exec::AccumulateOp> sums; // by bucket, all
  llvm::DenseSet<mlir::Operation *> used;                      // buffers that are sums
  llvm::DenseMap<uint64_t, exec::StartOp> inFlight;            // by number of the collective
  llvm::SetVector<mlir::Operation *> summed;   // buckets whose collective has not started
  llvm::SetVector<mlir::Operation *> awaiting; // buckets that have not been recalled
};

} // namespace dlc
