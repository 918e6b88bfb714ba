// dlc-lower-composites: replaces composite ops by simpler ones, which clusters can hold. The ops'
// own `decompose` says by which.

#include "dialects/NN/Role.h"
#include "passes/Passes.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_LOWERCOMPOSITES
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
class LowerCompositesPass : public dlc::impl::LowerCompositesBase<LowerCompositesPass> {
public:
  using Base::Base;
  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Train)))
      return signalPassFailure();
    for (auto program : getOperation().getBody().getOps<ProgramOp>())
      for (Operation &op : llvm::make_early_inc_range(program.getBody().front()))
        lower(&op);
  }

private:
  /// The simpler ops may be composite, too.
  static void lower(Operation *op) {
    auto composite = dyn_cast<CompositeOpInterface>(op);
    if (!composite)
      return;
    RoleStamp stamp(roleOf(op));
    stamp.role.kind = std::max(stamp.role.kind, composite.layerKind());
    IRRewriter rewriter(op->getContext(), &stamp);
    rewriter.setInsertionPoint(op);
    Operation *before = op->getPrevNode();
    SmallVector<Value> results = composite.decompose(rewriter);
    if (results.empty())
      return;
    SmallVector<Operation *> parts;
    for (Operation *part = before ? before->getNextNode() : &op->getBlock()->front(); part != op;
         part = part->getNextNode())
      parts.push_back(part);
    rewriter.replaceOp(op, results);
    for (Operation *part : parts)
      lower(part);
  }
};
} // namespace
