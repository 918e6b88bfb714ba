// dlc-accumulate-gradients: one walk; buckets of one size share a kernel.

#include "passes/Passes.h"
#include "passes/exec/KernelTable.h"
#include "passes/planning/PlanningTarget.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::exec;

namespace dlc {
#define GEN_PASS_DEF_ACCUMULATEGRADIENTS
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
class AccumulateGradientsPass : public dlc::impl::AccumulateGradientsBase<AccumulateGradientsPass> {
public:
  using Base::Base;
  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Exec)))
      return signalPassFailure();
    std::shared_ptr<rt::KernelPlanner> planner = openPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    DenseMap<Type, KernelOp> kernels;
    for (auto program : getOperation().getBody().getOps<exec::ProgramOp>())
      for (auto start : program.getBody().getOps<StartOp>()) {
        KernelOp &kernel = kernels[start.getBucket().getType()];
        if (!kernel)
          kernel = addingKernel(start, kernels.size() - 1, symbols, *planner);
        if (!kernel)
          return signalPassFailure();
        accumulate(start, kernel);
      }
  }

private:
  /// Null after a diagnostic.
  KernelOp addingKernel(StartOp start, size_t number, SymbolTable &symbols,
                        const rt::KernelPlanner &planner) {
    RankedTensorType type = start.getBucket().getType().getTensor();
    Location loc = getOperation().getLoc(); // of no layer
    OpBuilder builder = OpBuilder::atBlockEnd(&getOperation().getBody().front());
    auto cluster =
        ClusterOp::create(builder, loc, ("sum_" + Twine(number)).str(), DenseI64ArrayAttr());
    symbols.insert(cluster);
    Block &body = cluster.getBody().emplaceBlock();
    body.addArguments({type, type}, {loc, loc});
    builder.setInsertionPointToEnd(&body);
    Value sum = nn::AddOp::create(builder, loc, type, body.getArgument(0), body.getArgument(1));
    nn::YieldOp::create(builder, loc, sum);
    return createKernel(cluster, ("accumulate_" + Twine(number)).str(), "accumulate", symbols,
                        planner);
  }

  static void accumulate(StartOp start, KernelOp kernel) {
    auto bucket = rootOf(start.getBucket()).buffer;
    OpBuilder builder(bucket->getContext());
    builder.setInsertionPointAfter(bucket);
    auto sum = BufferOp::create(builder, bucket.getLoc(), start.getBucket().getType(),
                                ArenaKind::Sums, IntegerAttr(), bucket.getLabelAttr(),
                                FlatSymbolRefAttr(), StringAttr(), ArrayAttr());
    builder.setInsertionPoint(start);
    AccumulateOp::create(builder, start.getLoc(), kernel.getSymName(), start.getBucket(),
                         sum.getBuffer(), start.getPhaseAttr(), StreamAttr());
    if (start.getPhase() == Phase::Count)
      recall(start, sum);
  }

  static void recall(StartOp start, BufferOp sum) {
    Operation *wait = start->getNextNode();
    while (!isa<exec::WaitOp>(wait) ||
           cast<exec::WaitOp>(wait).getCollective() != start.getCollective())
      wait = wait->getNextNode();
    OpBuilder builder(start.getContext());
    builder.setInsertionPointAfter(wait);
    RecallOp::create(builder, start.getLoc(), start.getBucket(), sum.getBuffer(), StreamAttr());
  }
};
} // namespace
