// Threads' functions become LLVM's dialect.
#pragma once

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace dlc {

/// Keeps the assembler from unrolling a loop: where iterations store, loads of the next ones may
/// not move ahead of that, and more registers are all that it would take.
void keepRolled(mlir::scf::ForOp loop);

/// Lowers the functions of a module, which emitGpuStage has emitted.
llvm::LogicalResult lowerGpuKernels(mlir::ModuleOp module);

} // namespace dlc
