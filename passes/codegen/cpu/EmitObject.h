// LLVM's dialect becomes object files, shares of the functions side by side.
#pragma once

#include "passes/codegen/cpu/CodeTarget.h"

#include "mlir/IR/BuiltinOps.h"

#include <vector>

namespace dlc {

/// Moves the functions of a module, in their order, to modules within it of about the same number
/// of operations. Functions know nothing of each other, so these shares are lowered and compiled
/// side by side.
void splitIntoShares(mlir::ModuleOp module);

/// Object files, one a share.
using Objects = std::vector<llvm::SmallVector<char, 0>>;

/// Compiles lowered shares. `text` receives the optimised LLVM IR.
mlir::FailureOr<Objects> emitObjects(mlir::ModuleOp shares, const CodeTarget &target,
                                     llvm::raw_ostream *text);

} // namespace dlc
