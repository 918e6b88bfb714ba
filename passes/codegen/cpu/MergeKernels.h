// One body for kernels that differ in sizes only.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace dlc {

/// A kernel's name, the function that computes it, and the values of the function's last arguments.
struct KernelEntry {
  std::string name, body = {};
  llvm::SmallVector<int64_t> sizes = {};
};

/// Keeps one of the functions that differ only in sizes, the body, which takes these as arguments.
/// Functions that stay get the names of bodies. Returns all kernels, those of a body together.
std::vector<KernelEntry> mergeKernels(mlir::ModuleOp module);

} // namespace dlc
