// The one translation from nn ops to rt::KernelRequest, which asks a provider for kernels: layout
// assignment, kernel planning and the conversion to exec all use it, so they speak of the same
// kernel.
#pragma once

#include "passes/planning/PlanningTarget.h"

namespace dlc {

/// True for ops whose implementer is asked for: convolutions, matrix products, pooling, reorders.
inline bool hasRequest(mlir::Operation *op) { return op->hasTrait<nn::HasKernelRequest>(); }

/// True if a kernel computes the value: it is no input, variable, constant, view or sum over ranks.
bool isKernelResult(mlir::Value value);

/// The request of an op that has one, nothing for others. Its operands are the op's operands and
/// results in order, with the layouts of their types.
std::optional<rt::KernelRequest> kernelRequest(mlir::Operation *op, const PlanningTarget &target);

} // namespace dlc
