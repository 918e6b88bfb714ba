// Takes for each op that has a request the cheapest of its kernels with the layouts as they are,
// whoever implements it, and estimates clusters by what their stages move and compute.

#include "dialects/NN/Role.h"
#include "passes/Passes.h"
#include "passes/planning/LiveBytes.h"
#include "passes/planning/PlannedKernel.h"
#include "passes/planning/TargetKernels.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_PLANKERNELS
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {

/// Makes a cluster of one op, for which code is generated.
nn::FusedOp enclose(Operation *op) {
  OpBuilder builder(op);
  auto fused = nn::FusedOp::create(builder, op->getLoc(), op->getResultTypes(), op->getOperands());
  Block &body = fused.getBody().emplaceBlock();
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, body.addArgument(operand.getType(), operand.getLoc()));
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  Operation *copy = inner.clone(*op, mapping);
  copy->removeAttr(nn::roleName);
  nn::setRole(fused, nn::roleOf(op));
  nn::YieldOp::create(inner, op->getLoc(), copy->getResults());
  op->replaceAllUsesWith(fused);
  op->erase();
  return fused;
}

struct PlanKernelsPass : dlc::impl::PlanKernelsBase<PlanKernelsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Schedule)))
      return signalPassFailure();
    nn::ModelOp model = getOperation();
    std::unique_ptr<TargetKernels> kernels = TargetKernels::open(model);
    if (!kernels)
      return signalPassFailure();
    auto programs = model.getBody().getOps<nn::ProgramOp>();
    // Clusters come first: they must be known to be possible before anyone asks what shares their
    // memory. An op that costs less as generated code is one, too.
    for (nn::ProgramOp program : programs) {
      for (auto fused : program.getBody().getOps<nn::FusedOp>())
        if (failed(kernels->planCluster(fused)))
          return signalPassFailure();
      for (Operation &op : llvm::make_early_inc_range(program.getBody().front()))
        if (hasRequest(&op) && kernels->isGenerated(&op) &&
            failed(plan(&op, *kernels, /*workspace=*/0)))
          return signalPassFailure();
    }
    // Programs share their memory, so the largest one's peak counts for all. The tenth is one of
    // the whole plan, to which variables belong. Where workspace pays at all it gains far more time
    // than memoryPrice asks for, so this limit ends it, not the price.
    uint64_t peak = 0;
    for (nn::ProgramOp program : programs)
      peak = std::max(peak, LiveBytes(program.getBody().front()).peak());
    uint64_t limit = peak + (variableBytes(model) + peak) / 10;
    for (nn::ProgramOp program : programs) {
      LiveBytes live(program.getBody().front());
      for (Operation &op : llvm::make_early_inc_range(program.getBody().front())) {
        if (hasRequest(&op) && failed(plan(&op, *kernels, limit - live.at(&op))))
          return signalPassFailure();
      }
    }
  }

  /// Writes down who runs an op, the cheapest that gets along with `workspace` bytes; what is
  /// generated becomes a cluster.
  LogicalResult plan(Operation *op, TargetKernels &kernels, uint64_t workspace) {
    FailureOr<rt::KernelCandidate> choice = choose(op, kernels, workspace);
    if (failed(choice))
      return failure();
    if (choice->implementation == generatedName)
      return kernels.planCluster(enclose(op), &*choice);
    op->setAttr(plannedKernelName, kernelAttr(op->getContext(), *choice));
    return success();
  }

  /// Brings a convolution's weight into a layout in which an allowed kernel exists: some are
  /// Winograd's alone. False if there is none, failure after a diagnostic.
  FailureOr<bool> reorderWeight(Operation *op, TargetKernels &kernels,
                                llvm::function_ref<bool(const rt::KernelCandidate &)> isAllowed) {
    rt::KernelRequest request = *kernels.request(op);
    std::optional<size_t> index = rt::weightOperand(request.op);
    if (!index || *index >= op->getNumOperands()) // a filter gradient's weight is its result
      return false;
    request.operands[*index].layout.reset();
    rt::CandidateList list = kernels.candidates(op, request);
    auto fits = llvm::find_if(list.candidates, isAllowed);
    if (fits == list.candidates.end())
      return false;
    Value weight = op->getOperand(*index);
    auto former = weight.getDefiningOp<nn::ReorderOp>();
    Value source = former ? former.getX() : weight;
    auto type = nn::withLayout(nn::tensorType(weight), fits->layouts[*index]);
    if (source.getType() == type) {
      op->setOperand(*index, source);
    } else {
      OpBuilder builder(op);
      auto reorder = nn::ReorderOp::create(builder, op->getLoc(), type, source);
      nn::setRole(reorder, {nn::phaseOf(op)});
      op->setOperand(*index, reorder.getY());
      if (failed(plan(reorder, kernels, UINT64_MAX)))
        return failure();
    }
    if (former && former->use_empty())
      former->erase();
    return true;
  }

  /// The cheapest kernel whose workspace is allowed, else the one with the least.
  FailureOr<rt::KernelCandidate> choose(Operation *op, TargetKernels &kernels, uint64_t workspace) {
    rt::CandidateList list = kernels.candidates(op, *kernels.request(op));
    if (list.candidates.empty())
      return op->emitOpError("has no kernel on ") << kernels.target().name << ": " << list.reason;
    auto isAllowed = [&](const rt::KernelCandidate &candidate) {
      return candidate.workspaceBytes <= workspace;
    };
    auto fits = llvm::find_if(list.candidates, isAllowed);
    if (fits == list.candidates.end()) {
      FailureOr<bool> isReordered = reorderWeight(op, kernels, isAllowed);
      if (failed(isReordered))
        return failure();
      if (*isReordered) {
        list = kernels.candidates(op, *kernels.request(op));
        fits = llvm::find_if(list.candidates, isAllowed);
      }
    }
    if (fits == list.candidates.end())
      fits = std::ranges::min_element(list.candidates, {}, &rt::KernelCandidate::workspaceBytes);
    return *fits;
  }
};

} // namespace
