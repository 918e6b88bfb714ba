// What a kernel library is asked for an op of the graph.
//
// The one translation from nn ops to rt::KernelRequest: layout assignment, kernel planning and the
// conversion to exec all ask with it, so they speak of the same kernel.
#pragma once

#include "dialects/NN/NN.h"
#include "runtime/core/KernelPlanner.h"

#include <memory>
#include <optional>
#include <string>

namespace dlc {

/// True if a library runs the op: convolutions, matrix products, reorders, pooling unless its
/// windows tile channels-innermost memory.
bool isLibraryOp(mlir::Operation *op);

/// The same of a pooling whose operands and results will have these layouts.
bool isLibraryPooling(mlir::Operation *op, const std::vector<rt::Layout> &layouts);

/// The kernel of a library op, nothing for others. The request's operands are the op's operands and
/// results in order, with the layouts of their types.
std::optional<rt::KernelRequest> kernelRequest(mlir::Operation *op, rt::Math math,
                                               unsigned threads);

/// The discardable attribute in which dlc-plan-kernels writes a #nn.kernel. (Pooling ops have a
/// `kernel` of their own, the window.)
inline constexpr llvm::StringLiteral plannedKernelName = "nn.kernel";

/// What was planned for the op, or null.
inline nn::KernelAttr plannedKernel(mlir::Operation *op) {
  return op->getAttrOfType<nn::KernelAttr>(plannedKernelName);
}

/// The discardable attribute of a kernel that computes again what was not kept: the bytes by which
/// that lowers the peak (dlc-recompute-kernels).
inline constexpr llvm::StringLiteral recomputedName = "nn.recomputed";

/// Forecast of a cluster as one generated kernel, or null after a diagnostic.
nn::KernelAttr generatedKernel(nn::FusedOp op, const rt::KernelPlanner &planner);

/// What a model is planned for: attributes `target`, `threads` and `math` of the nn.model from the
/// schedule stage on, written by dlc-assign-layouts.
struct PlanningTarget {
  std::string name = "cpu:native";
  unsigned threads = 1;
  rt::Math math = rt::Math::Fast;

  /// Nothing if the model has no target yet.
  static std::optional<PlanningTarget> of(nn::ModelOp model);
  /// By which the model names a planner's target: its table of costs is a part of the target.
  static std::string nameOf(const rt::PlannerTarget &target) {
    return target.table.empty() ? target.name : target.table;
  }
  void writeTo(nn::ModelOp model) const;
};

/// The planner of a target, or null with `reason` set. `test` is a planner that follows fixed rules
/// on any machine.
std::unique_ptr<rt::KernelPlanner> openPlanner(const std::string &target, unsigned threads,
                                               std::string &reason);

/// The planner of the model's target, or null after a diagnostic at the model.
std::unique_ptr<rt::KernelPlanner> openPlanner(nn::ModelOp model);

} // namespace dlc
