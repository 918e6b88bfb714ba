// Asks the target's planner for each library op with the layouts as they are, and estimates
// clusters by what their stages move and compute.

#include "passes/GeneratedKernels.h"
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
  double nanoseconds = 0;
  for (const GeneratedStage &stage : planGeneratedKernel(op.getBody().front()).stages) {
    bytes += stage.bytes;
    flops += stage.flops;
    nanoseconds += planner.generatedCost(stage.bytes, stage.flops);
  }
  return nn::KernelAttr::get(op.getContext(), "generated", /*workspace=*/0, flops, bytes,
                             static_cast<uint64_t>(nanoseconds));
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
