// Loops over vectors become LLVM's dialect.
#pragma once

#include "passes/codegen/cpu/CodeTarget.h"
#include "passes/codegen/cpu/MergeKernels.h"

#include "llvm/ADT/StringMap.h"

namespace dlc {

/// What kernels may be called for, by their names (runtime/artifact/Contract.h).
using Contracts = llvm::StringMap<int64_t>;

/// Lowers the functions of the shares to LLVM's dialect and adds the kernels' records (runtime/cpu/
/// GeneratedCode.h). Roundings that the target has no instruction for become integer code.
llvm::LogicalResult lowerToLlvm(mlir::ModuleOp shares, llvm::ArrayRef<KernelEntry> entries,
                                const Contracts &contracts, const CodeTarget &target);

} // namespace dlc
