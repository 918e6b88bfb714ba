// The one list of a target's kernels for the ops of a model, whoever implements them.
#pragma once

#include "passes/planning/KernelProvider.h"
#include "passes/planning/KernelRequests.h"

namespace dlc {

class TargetKernels {
public:
  TargetKernels(std::shared_ptr<rt::KernelPlanner> planner, PlanningTarget target);

  /// The kernels of the model's target, or null after a diagnostic at the model.
  static std::unique_ptr<TargetKernels> open(nn::ModelOp model);

  const PlanningTarget &target() const { return planned; }
  rt::KernelPlanner &planner() const { return *library; }
  const rt::PlannerTarget &description() const { return library->target(); }

  /// See kernelRequest.
  std::optional<rt::KernelRequest> request(mlir::Operation *op) const {
    return kernelRequest(op, planned);
  }
  /// Ways to run an op with the layouts that the request fixes, cheapest first, a library's before
  /// others that cost the same; or the library's reason why there are none.
  rt::CandidateList candidates(mlir::Operation *op, const rt::KernelRequest &request);
  /// True if an op with a request costs least as generated code, with the layouts that it has.
  bool isGenerated(mlir::Operation *op);

  /// Nanoseconds of the cheapest kernel that brings a tensor from one layout into another.
  double reorderCost(mlir::RankedTensorType tensor, const rt::Layout &from, const rt::Layout &to);
  /// Nanoseconds of a generated kernel that moves `bytes` and computes `flops`.
  double generatedCost(uint64_t bytes, uint64_t flops) const {
    return library->generatedCost(bytes, flops);
  }
  /// Writes on a cluster its plan and, as `nn.kernel`, what it moves, computes and takes, or what
  /// was offered for the only op in it. Fails with a diagnostic if no kernel can be generated.
  llvm::LogicalResult planCluster(nn::FusedOp cluster, const rt::KernelCandidate *offer = nullptr);

private:
  PlanningTarget planned;
  std::shared_ptr<rt::KernelPlanner> library;
  std::vector<std::unique_ptr<KernelProvider>> providers; // the library's first
  llvm::DenseMap<std::pair<mlir::Type, mlir::Type>, double> reorderCosts;
};

/// An offer as the attribute of the op that is to take it.
nn::KernelAttr kernelAttr(mlir::MLIRContext *context, const rt::KernelCandidate &candidate);

} // namespace dlc
