// Asks the target's planner for each library op with the layouts as they are, and estimates
// clusters by what their stages move and compute.

#include "dialects/NN/Role.h"
#include "passes/Passes.h"
#include "passes/codegen/GeneratedKernels.h"
#include "passes/codegen/ProductPlan.h"
#include "passes/planning/KernelRequests.h"
#include "passes/planning/LiveBytes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_PLANKERNELS
#include "passes/Passes.h.inc"
} // namespace dlc

nn::KernelAttr dlc::generatedKernel(nn::FusedOp op, const rt::KernelPlanner &planner) {
  uint64_t bytes = 0, flops = 0;
  double nanoseconds = 0;
  FailureOr<GeneratedKernel> planned = planGeneratedKernel(op.getBody().front());
  if (failed(planned))
    return {};
  for (const GeneratedStage &stage : planned->stages) {
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
    if (failed(requireStage(getOperation(), "schedule")))
      return signalPassFailure();
    nn::ModelOp model = getOperation();
    std::unique_ptr<rt::KernelPlanner> planner = openPlanner(model);
    if (!planner)
      return signalPassFailure();
    PlanningTarget target = *PlanningTarget::of(model);
    auto programs = model.getBody().getOps<nn::ProgramOp>();
    // Clusters first: what shares their memory is asked of those that can be generated.
    for (nn::ProgramOp program : programs)
      for (auto fused : program.getBody().getOps<nn::FusedOp>()) {
        nn::KernelAttr kernel = generatedKernel(fused, *planner);
        if (!kernel)
          return signalPassFailure();
        fused->setAttr(plannedKernelName, kernel);
      }
    // Programs share their memory, so the largest one's peak counts for all. The tenth is one of
    // the whole plan, to which variables belong. Where workspace pays at all it gains far more time
    // than memoryPrice asks for, so this limit ends it, not the price.
    uint64_t peak = 0;
    SharingTable clusters;
    for (nn::ProgramOp program : programs)
      peak = std::max(peak, LiveBytes(program.getBody().front(), clusters).peak());
    uint64_t limit = peak + (variableBytes(model) + peak) / 10;
    for (nn::ProgramOp program : programs) {
      LiveBytes live(program.getBody().front(), clusters);
      for (Operation &op : llvm::make_early_inc_range(program.getBody().front())) {
        if (!isLibraryOp(&op))
          continue;
        nn::KernelAttr kernel = libraryKernel(&op, *planner, target, limit - live.at(&op));
        if (!kernel)
          return signalPassFailure();
        op.setAttr(plannedKernelName, kernel);
        if (auto product = dyn_cast<nn::MatmulOp>(op))
          generateCheaper(product, *planner, *kernelRequest(&op, target.math, target.threads));
      }
    }
  }

  /// Makes a cluster of a product whose generated kernel costs less than the library's.
  static void generateCheaper(nn::MatmulOp op, const rt::KernelPlanner &planner,
                              const rt::KernelRequest &request) {
    std::optional<ProductPlan> plan = planProduct(op);
    nn::KernelAttr library = plannedKernel(op);
    double nanoseconds = planner.productCost(request);
    if (!plan || nanoseconds >= static_cast<double>(library.getNanoseconds()))
      return;
    OpBuilder builder(op);
    auto fused = nn::FusedOp::create(builder, op.getLoc(), TypeRange(op.getY().getType()),
                                     op->getOperands());
    Block &body = fused.getBody().emplaceBlock();
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, body.addArgument(operand.getType(), operand.getLoc()));
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    Operation *copy = inner.clone(*op, mapping);
    copy->removeAttr(plannedKernelName);
    copy->removeAttr(nn::roleName);
    nn::setRole(fused, nn::roleOf(op));
    nn::YieldOp::create(inner, op.getLoc(), copy->getResults());
    fused->setAttr(plannedKernelName,
                   nn::KernelAttr::get(op.getContext(), "generated", /*workspace=*/0,
                                       library.getFlops(), library.getBytes(),
                                       static_cast<uint64_t>(nanoseconds)));
    op->replaceAllUsesWith(fused);
    op->erase();
  }

  /// Brings a convolution's weight into a layout in which an allowed kernel exists: some are
  /// Winograd's alone. False if there is none, failure after a diagnostic.
  FailureOr<bool> reorderWeight(Operation *op, rt::KernelPlanner &planner,
                                const PlanningTarget &target,
                                llvm::function_ref<bool(const rt::KernelCandidate &)> isAllowed) {
    if (!isa<nn::ConvOp, nn::ConvTransposeOp, nn::ConvGradDataOp>(op))
      return false;
    rt::KernelRequest request = *kernelRequest(op, target.math, target.threads);
    request.operands[1].layout.reset();
    rt::CandidateList list = planner.candidates(request);
    auto fits = llvm::find_if(list.candidates, isAllowed);
    if (fits == list.candidates.end())
      return false;
    Value weight = op->getOperand(1);
    auto former = weight.getDefiningOp<nn::ReorderOp>();
    Value source = former ? former.getX() : weight;
    auto type = nn::withLayout(nn::tensorType(weight), fits->layouts[1]);
    if (source.getType() == type) {
      op->setOperand(1, source);
    } else {
      OpBuilder builder(op);
      auto reorder = nn::ReorderOp::create(builder, op->getLoc(), type, source);
      nn::setRole(reorder, {nn::phaseOf(op)});
      nn::KernelAttr kernel = libraryKernel(reorder, planner, target, UINT64_MAX);
      if (!kernel)
        return failure();
      reorder->setAttr(plannedKernelName, kernel);
      op->setOperand(1, reorder.getY());
    }
    if (former && former->use_empty())
      former->erase();
    return true;
  }

  /// The cheapest kernel whose workspace is allowed, else the one with the least.
  nn::KernelAttr libraryKernel(Operation *op, rt::KernelPlanner &planner,
                               const PlanningTarget &target, uint64_t workspace) {
    rt::CandidateList list = planner.candidates(*kernelRequest(op, target.math, target.threads));
    if (list.candidates.empty()) {
      op->emitOpError("has no kernel on ") << target.name << ": " << list.reason;
      return {};
    }
    auto isAllowed = [&](const rt::KernelCandidate &candidate) {
      return candidate.workspaceBytes <= workspace;
    };
    auto fits = llvm::find_if(list.candidates, isAllowed);
    if (fits == list.candidates.end()) {
      FailureOr<bool> isReordered = reorderWeight(op, planner, target, isAllowed);
      if (failed(isReordered))
        return {};
      if (*isReordered) {
        list = planner.candidates(*kernelRequest(op, target.math, target.threads));
        fits = llvm::find_if(list.candidates, isAllowed);
      }
    }
    if (fits == list.candidates.end())
      fits = std::ranges::min_element(list.candidates, {}, &rt::KernelCandidate::workspaceBytes);
    const rt::KernelCandidate &choice = *fits;
    return nn::KernelAttr::get(op->getContext(), choice.implementation, choice.workspaceBytes,
                               choice.flops, choice.bytes,
                               static_cast<uint64_t>(choice.nanoseconds));
  }
};

} // namespace
