// Threads' functions become LLVM's dialect.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace dlc {

/// Lowers the functions of a module, which emitGpuStage has emitted.
llvm::LogicalResult lowerGpuKernels(mlir::ModuleOp module);

} // namespace dlc
