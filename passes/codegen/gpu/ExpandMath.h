// Functions of f64, for which a GPU has no instructions and the project takes no library.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace dlc {

/// Replaces exp, log, pow and tanh of f64 scalars by arithmetic, within a few units of the last
/// place; pow within as many units as y log x has. Zeros, infinities and NaN as C has them.
llvm::LogicalResult expandMath(mlir::ModuleOp module);

} // namespace dlc
