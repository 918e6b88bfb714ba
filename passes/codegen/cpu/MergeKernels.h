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

/// Leaves of functions that differ only in sizes one, which takes these as arguments. All functions
/// but bodies get the names of bodies; returns the kernels that they are of, those of a body
/// together.
std::vector<KernelEntry> mergeKernels(mlir::ModuleOp module);

} // namespace dlc
