// The one translation from nn ops to rt::KernelRequest, which asks a provider for kernels: layout
// assignment, kernel planning and the conversion to exec all use it, so they speak of the same
// kernel.
#pragma once

#include "passes/planning/PlanningTarget.h"

namespace dlc {

/// True for ops that a kernel library may know: convolutions, matrix products, pooling, reorders.
bool hasRequest(mlir::Operation *op);

/// The request of such an op, nothing for others. Its operands are the op's operands and results in
/// order, with the layouts of their types.
std::optional<rt::KernelRequest> kernelRequest(mlir::Operation *op, const PlanningTarget &target);

} // namespace dlc
