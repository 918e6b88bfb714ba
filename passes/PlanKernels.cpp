// Asks the target's planner for each library op with the layouts as they are, and estimates
// clusters by the bytes that they move.

#include "passes/KernelRequests.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_PLANKERNELS
#include "passes/Passes.h.inc"
} // namespace dlc

nn::KernelAttr dlc::generatedKernel(nn::FusedOp op, const rt::KernelPlanner &planner) {
  uint64_t bytes = 0, flops = 0;
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    bytes += static_cast<uint64_t>(nn::physicalBytes(cast<RankedTensorType>(type)));
  for (Operation &inner : op.getBody().front())
    if (inner.hasTrait<nn::Elementwise>() || isa<nn::ReduceSumOp, nn::ReduceMaxOp>(inner))
      flops += static_cast<uint64_t>(nn::tensorType(inner.getOperand(0)).getNumElements());
  auto nanoseconds = static_cast<uint64_t>(planner.generatedCost(bytes, flops));
  return nn::KernelAttr::get(op.getContext(), "generated", /*workspace=*/0, flops, bytes,
                             nanoseconds);
}

namespace {

struct PlanKernelsPass : dlc::impl::PlanKernelsBase<PlanKernelsPass> {
  using Base::Base;

  void runOnOperation() override {
    nn::ModelOp model = getOperation();
    std::unique_ptr<rt::KernelPlanner> planner = openPlanner(model);
    if (!planner)
      return signalPassFailure();
    PlanningTarget target = *PlanningTarget::of(model);
    for (auto program : model.getBody().getOps<nn::ProgramOp>())
      for (Operation &op : program.getBody().front()) {
        nn::KernelAttr kernel;
        if (auto fused = dyn_cast<nn::FusedOp>(op))
          kernel = generatedKernel(fused, *planner);
        else if (isLibraryOp(&op))
          kernel = libraryKernel(&op, *planner, target);
        else
          continue;
        if (!kernel)
          return signalPassFailure();
        op.setAttr(plannedKernelName, kernel);
      }
  }

  nn::KernelAttr libraryKernel(Operation *op, rt::KernelPlanner &planner,
                               const PlanningTarget &target) {
    rt::CandidateList list = planner.candidates(*kernelRequest(op, target.math, target.threads));
    if (list.candidates.empty()) {
      op->emitOpError("has no kernel on ") << target.name << ": " << list.reason;
      return {};
    }
    const rt::KernelCandidate &choice = list.candidates.front();
    return nn::KernelAttr::get(op->getContext(), choice.implementation, choice.workspaceBytes,
                               choice.flops, choice.bytes,
                               static_cast<uint64_t>(choice.nanoseconds));
  }
};

} // namespace
