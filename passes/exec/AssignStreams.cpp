// dlc-assign-streams: one walk; kernels and copies on compute, collectives on comm behind an event,
// inputs on copy before one.

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
  static bool isOfInputs(UploadOp upload) {
    return llvm::any_of(upload.getBuffers(),
                        [](Value buffer) { return rootOf(buffer).buffer.getInput().has_value(); });
  }

  static Stream streamOf(Operation *op) {
    if (auto upload = dyn_cast<UploadOp>(op); upload && isOfInputs(upload))
      return Stream::Copy;
    return isa<StartOp>(op) ? Stream::Comm : Stream::Compute;
  }

  static void assign(exec::ProgramOp program) {
    int64_t events = 0;
    auto order = [&](OpBuilder &builder, Location loc, Stream first, Stream then) {
      RecordOp::create(builder, loc, events, first);
      WaitEventOp::create(builder, loc, events++, then);
    };
    for (Operation &op : llvm::make_early_inc_range(program.getBody().front())) {
      if (!op.hasTrait<Instruction>() || isa<RecordOp, WaitEventOp>(op))
        continue;
      Stream stream = streamOf(&op);
      op.setAttr("stream", StreamAttr::get(op.getContext(), stream));
      OpBuilder builder(&op);
      if (stream == Stream::Comm)
        order(builder, op.getLoc(), Stream::Compute, stream);
      builder.setInsertionPointAfter(&op);
      if (stream == Stream::Copy)
        order(builder, op.getLoc(), stream, Stream::Compute);
    }
  }
};
} // namespace
