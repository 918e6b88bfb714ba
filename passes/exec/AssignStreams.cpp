// dlc-assign-streams: one walk; kernels and copies on compute, collectives on comm behind an event.

#include "passes/Passes.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::exec;

namespace dlc {
#define GEN_PASS_DEF_ASSIGNSTREAMS
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
class AssignStreamsPass : public dlc::impl::AssignStreamsBase<AssignStreamsPass> {
public:
  using Base::Base;
  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Exec)))
      return signalPassFailure();
    for (auto program : getOperation().getBody().getOps<exec::ProgramOp>())
      assign(program);
  }

private:
  static void assign(exec::ProgramOp program) {
    int64_t events = 0;
    for (Operation &op : llvm::make_early_inc_range(program.getBody().front())) {
      if (!isInstruction(&op))
        continue;
      OpBuilder builder(&op);
      Stream stream = isa<StartOp>(op) ? Stream::Comm : Stream::Compute;
      if (isa<StartOp>(op)) {
        RecordOp::create(builder, op.getLoc(), events, Stream::Compute);
        WaitEventOp::create(builder, op.getLoc(), events, Stream::Comm);
        ++events;
      }
      if (!isa<RecordOp, WaitEventOp>(op))
        op.setAttr("stream", StreamAttr::get(op.getContext(), stream));
    }
  }
};
} // namespace
