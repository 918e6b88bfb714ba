// dlc-combine-equal: common subexpression elimination that ignores roles.
//
// The first of equal ops stays and keeps its role, except for the phase: that is the earliest of
// the equal ops' phases. An op of an update may stand ahead of an equal op of the forward pass.

#include "passes/nn/CombineEqual.h"

#include "dialects/NN/Role.h"
#include "passes/Passes.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_COMBINEEQUAL
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
/// Takes the roles off a block and puts them back: to MLIR, ops with different attributes differ.
class RolesAside : public RewriterBase::Listener {
public:
  explicit RolesAside(Block &block) : block(block) {
    for (Operation &op : block) {
      roles[&op] = nn::roleOf(&op);
      op.removeAttr(nn::roleName);
    }
  }
  ~RolesAside() override {
    for (Operation &op : block)
      nn::setRole(&op, roles.lookup(&op));
  }

  using RewriterBase::Listener::notifyOperationReplaced;
  void notifyOperationReplaced(Operation *op, Operation *equal) override {
    nn::Phase &phase = roles[equal].phase;
    phase = std::min(phase, roles.lookup(op).phase);
  }

private:
  Block &block;
  llvm::DenseMap<Operation *, nn::Role> roles;
};
} // namespace

void dlc::combineEqual(nn::ProgramOp program) {
  RolesAside roles(program.getBody().front());
  IRRewriter rewriter(program.getContext(), &roles);
  DominanceInfo dominance(program);
  eliminateCommonSubExpressions(rewriter, dominance, program);
}

namespace {
struct CombineEqualPass : dlc::impl::CombineEqualBase<CombineEqualPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto program : getOperation().getBody().getOps<nn::ProgramOp>())
      combineEqual(program);
  }
};
} // namespace
