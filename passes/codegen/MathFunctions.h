// Functions of f32 in generated code.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace dlc {

/// Replaces those that have good ones by polynomials, the same on every target.
llvm::LogicalResult approximateMath(mlir::ModuleOp module);

} // namespace dlc
