// dlc-verify-nn: checks what the later stages rely on, before the first pass of the stage and
// behind the last. The checks themselves are those of every stage (ModelChecks).

#include "passes/Passes.h"
#include "passes/nn/ModelChecks.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_VERIFYNN
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
struct VerifyNNPass : dlc::impl::VerifyNNBase<VerifyNNPass> {
  using Base::Base;

  void runOnOperation() override {
    auto models = getOperation().getOps<ModelOp>();
    size_t count = llvm::range_size(models);
    if (count != 1) { // 1.
      getOperation().emitError("expected exactly one nn.model, found ") << count;
      return signalPassFailure();
    }
    ModelOp model = *models.begin();
    ProgramForm form = written ? ProgramForm::Written : ProgramForm::Derived;
    if (failed(requireStage(model, nn::Stage::NN)) || failed(verifyAttributes(model)) ||
        failed(verifyVariables(model)) || failed(verifyPrograms(model, form)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
