// What dlc-plan-kernels and dlc-recompute-kernels write on ops.
#pragma once

#include "dialects/NN/NN.h"

namespace dlc {

/// The discardable attribute in which dlc-plan-kernels writes a #nn.kernel. (Pooling ops have a
/// `kernel` of their own, the window.)
inline constexpr llvm::StringLiteral plannedKernelName = "nn.kernel";

/// What was planned for the op, or null.
inline nn::KernelAttr plannedKernel(mlir::Operation *op) {
  return op->getAttrOfType<nn::KernelAttr>(plannedKernelName);
}

/// True for an op that was planned to run as a kernel of a library.
inline bool isLibraryKernel(mlir::Operation *op) {
  return plannedKernel(op) && !llvm::isa<nn::FusedOp>(op);
}

/// The discardable attribute of a kernel that recomputes a result that was not kept: the bytes by
/// which that lowers the peak (dlc-recompute-kernels).
inline constexpr llvm::StringLiteral recomputedName = "nn.recomputed";

} // namespace dlc
