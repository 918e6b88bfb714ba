// Functions of a module that several threads change at once.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace dlc {

/// Calls `change` with the number of each function, on all cores; it returns the function that
/// takes the place, perhaps the same. Meanwhile each function is in a module of its own, of which
/// `change` may change everything, and which has no other symbols. The context must be
/// multithreaded.
void changeSideBySide(llvm::ArrayRef<mlir::func::FuncOp> functions,
                      llvm::function_ref<mlir::func::FuncOp(size_t)> change);

} // namespace dlc
