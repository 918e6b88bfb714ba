// LLVM's part: kernels become PTX, the text that NVIDIA's assembler and drivers take.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace dlc {

/// One text for all devices from sm_80 on. f32 arithmetic flushes denormals, as that of the CPU's
/// kernels does, and nothing is contracted. `llvmText` receives the optimised LLVM IR.
mlir::FailureOr<std::string> emitPtx(mlir::ModuleOp module, llvm::raw_ostream *llvmText);

} // namespace dlc
