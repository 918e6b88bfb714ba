// Turns one nn.program into an exec.program: decides in which buffer every value lies, and which
// instructions run.
#pragma once

#include "dialects/Comm/Comm.h"
#include "passes/exec/KernelTable.h"
#include "passes/planning/BufferSharing.h"
#include "passes/planning/CountingOps.h"

#include "llvm/ADT/DenseMap.h"

namespace dlc {

class ProgramConverter {
public:
  /// `symbols` are the model's.
  ProgramConverter(nn::ProgramOp program, KernelTable &kernels, const mlir::SymbolTable &symbols);

  /// Builds the exec.program before the nn.program. Failures have been reported at their op.
  llvm::LogicalResult convert();

private:
  // Where values live.
  void placeInputs();
  void placeBuckets();
  void placeAssigned();
  bool canUpdateInPlace(nn::FusedOp producer, unsigned result, nn::AssignOp assign);
  mlir::Value variableBuffer(llvm::StringRef name);
  /// The variable's buffer, or a view of its rows from `row` on.
  mlir::Value variablePlace(llvm::StringRef name, std::optional<uint64_t> row,
                            mlir::RankedTensorType type, mlir::Location loc);
  mlir::Value assignedPlace(nn::AssignOp assign);
  mlir::Value bufferOf(mlir::Value value);
  mlir::Value newBuffer(mlir::RankedTensorType type, exec::ArenaKind arena, mlir::Location loc);

  // What runs.
  void upload();
  llvm::LogicalResult convertOp(mlir::Operation *op);
  llvm::LogicalResult check(nn::CountNonfiniteOp op);
  llvm::LogicalResult dispatch(mlir::Operation *op, const KernelUse &use);
  exec::Phase phaseOf(mlir::Operation *op) const;
  exec::PhaseAttr collectivePhase(comm::StartOp start) const;
  void start(mlir::Operation *op);
  void view(mlir::Operation *op, mlir::Value source, mlir::Value result);
  void keepOldValues();
  void assignRemaining();
  void download(mlir::Operation *op);

  nn::ProgramOp program;
  const CountingOps counting;
  KernelTable &kernels;
  const mlir::SymbolTable &symbols;
  mlir::OpBuilder buffers; // exec.buffer and exec.view of placed values, ahead of all instructions
  mlir::OpBuilder instructions; // appended in program order
  exec::ProgramOp result;

  llvm::DenseMap<mlir::Value, mlir::Value> placed; // tensor -> buffer
  std::optional<BufferSharing> sharing;            // once all else is placed
  llvm::StringMap<mlir::Value> variables;
  llvm::StringMap<llvm::SmallVector<nn::ReadOp, 1>> reads; // by variable
  llvm::DenseMap<std::tuple<mlir::Value, uint64_t, mlir::Type>, mlir::Value> variableRows;
  llvm::DenseMap<mlir::Operation *, mlir::Value> buckets; // comm.start -> bucket
  llvm::DenseSet<mlir::Operation *> inPlaceAssigns;
};

} // namespace dlc
