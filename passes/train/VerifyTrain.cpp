// dlc-verify-train: ranks that start equal stay equal. One walk in program order marks the values
// that may differ between ranks, each with the op or argument where the difference comes from.

#include "dialects/NN/Scalars.h"
#include "passes/Passes.h"
#include "passes/nn/ModelChecks.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_VERIFYTRAIN
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
class VerifyTrainPass : public dlc::impl::VerifyTrainBase<VerifyTrainPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    ModelOp model = getOperation();
    if (failed(requireStage(model, nn::Stage::Train)) || failed(verifyAttributes(model)) ||
        failed(verifyVariables(model)) || failed(verifyPrograms(model, ProgramForm::Train))) // 4.
      return signalPassFailure();
    for (auto program : model.getBody().getOps<ProgramOp>()) {
      divergent.clear();
      for (BlockArgument input : program.getBody().getArguments())
        divergent[input] = input;
      for (Operation &op : program.getBody().front())
        if (failed(verifyOp(program, op)))
          return signalPassFailure();
    }
  }

private:
  LogicalResult verifyOp(ProgramOp program, Operation &op) {
    if (isa<GradientOp>(op)) // 1.
      return op.emitOpError("is left: no optimizer consumed it");
    if (op.hasAttr("sync")) // 3.
      return op.emitOpError("has `sync`, which dlc-insert-all-reduce turns into sums over ranks");
    if (isa<comm::CommDialect>(op.getDialect()) && program.getSymName() != "train") // 3.
      return op.emitOpError("is in @") << program.getSymName() << "; only @train communicates";
    if (auto assign = dyn_cast<AssignOp>(op))
      return verifyAssign(program, assign);
    if (Value origin = originOf(op))
      for (Value result : op.getResults())
        divergent[result] = origin;
    return success();
  }

  /// Where a difference between ranks in the op's results comes from, or null.
  Value originOf(Operation &op) {
    if (isa<comm::CommDialect>(op.getDialect()))
      return {};
    if (auto read = dyn_cast<ReadOp>(op)) {
      const ScalarInfo *scalar = lookupScalar(read.getVariable());
      return scalar && !scalar->isEqualOnAllRanks ? read.getValue() : Value();
    }
    for (Value operand : op.getOperands())
      if (Value origin = divergent.lookup(operand))
        return origin;
    return {};
  }

  LogicalResult verifyAssign(ProgramOp program, AssignOp assign) { // 2.
    Value origin = divergent.lookup(assign.getValue());
    if (!origin)
      return success();
    InFlightDiagnostic error = assign.emitOpError("makes @")
                               << assign.getVariable()
                               << " differ between ranks: its value is not all-reduced";
    Diagnostic &note = error.attachNote(origin.getLoc());
    if (auto input = dyn_cast<BlockArgument>(origin))
      note << "it derives from input '" << program.getInputName(input.getArgNumber()) << "'";
    else
      note << "it derives from @" << origin.getDefiningOp<ReadOp>().getVariable();
    return error;
  }

  llvm::DenseMap<Value, Value> divergent; // value -> origin
};
} // namespace
