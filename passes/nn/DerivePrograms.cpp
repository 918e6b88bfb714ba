// dlc-derive-programs: clones @train for @eval and @predict if these are missing, leaves the rows
// that pad a batch out of the clone's losses and metrics, gives every program its mode and drops
// unused ops and inputs.

#include "dialects/NN/InputRange.h"
#include "dialects/NN/RowMask.h"
#include "dialects/NN/Scalars.h"
#include "passes/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_DERIVEPROGRAMS
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
//===- Programs -------------------------------------------------------------------------------===//

template <typename... Ops> void eraseOps(ProgramOp program) {
  for (Operation &op : llvm::make_early_inc_range(program.getBody().front()))
    if (isa<Ops...>(op))
      op.erase();
}

/// The running statistics that norms read: where one is used again, later uses in training read
/// what earlier ones have made of them.
class Statistics {
public:
  /// As a step begins with it, instead of `current`.
  Value atStart(Value current) {
    Made made = madeOf(current);
    return made.ofBatch && made.start ? made.start : current;
  }

private:
  struct Made {
    Value start; // the first that is read
    bool ofBatch = false;
  };

  Made madeOf(Value value) {
    if (auto known = all.find(value); known != all.end())
      return known->second;
    Operation *op = value.getDefiningOp();
    Made made = {isa_and_nonnull<ReadOp>(op) ? value : Value(), isa_and_nonnull<BatchNormOp>(op)};
    if (isa_and_nonnull<AddOp, MulOp>(op))
      for (Value operand : op->getOperands()) {
        Made part = madeOf(operand);
        made = {made.start ? made.start : part.start, made.ofBatch || part.ofBatch};
      }
    return all[value] = made;
  }

  llvm::DenseMap<Value, Made> all;
};

/// Sets what eval and predict do differently from train.
void setInferenceMode(ProgramOp program) {
  Statistics statistics;
  for (Operation &op : llvm::make_early_inc_range(program.getBody().front())) {
    if (auto norm = dyn_cast<BatchNormOp>(op)) {
      norm.setTraining(false);
      norm.setSync(false);
      for (OpOperand *running : {&norm.getRunningMeanMutable(), &norm.getRunningVarMutable()})
        running->set(statistics.atStart(running->get()));
    } else if (auto dropout = dyn_cast<DropoutOp>(op)) {
      dropout.replaceAllUsesWith(dropout.getX());
      dropout.erase();
    }
  }
}

/// Tells the runtime which labels the losses can take. Prediction has none, and takes any data.
void recordRanges(ProgramOp program) {
  for (auto loss : program.getBody().getOps<SoftmaxCrossEntropyOp>())
    expectRange(loss.getLabel(), 0,
                static_cast<double>(tensorType(loss.getLogits()).getDimSize(1) - 1));
  if (program.getSymName() == "predict")
    for (unsigned i = 0; i < program.getNumArguments(); ++i)
      for (StringRef expected : {inputRange, inputSumsToOne})
        program.removeArgAttr(i, StringAttr::get(program.getContext(), expected));
}

/// Erases ops and inputs that reach no sink.
LogicalResult prune(ProgramOp program) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(program.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  llvm::BitVector unused(program.getNumArguments());
  for (BlockArgument input : program.getBody().getArguments())
    if (input.use_empty())
      unused.set(input.getArgNumber());
  return program.eraseArguments(unused);
}

/// Keeps unread state: statistics of the data are the host's to use.
void pruneVariables(ModelOp model) {
  llvm::DenseSet<Attribute> used;
  model.walk([&](Operation *op) {
    if (isa<ReadOp, AssignOp, GradientOp>(op))
      used.insert(op->getAttrOfType<FlatSymbolRefAttr>("variable").getAttr());
  });
  for (auto variable : llvm::make_early_inc_range(model.getBody().getOps<VariableOp>()))
    if (variable.getKind() != VariableKind::State && !used.contains(variable.getSymNameAttr()))
      variable.erase();
}

//===- Pass -----------------------------------------------------------------------------------===//

class DeriveProgramsPass : public dlc::impl::DeriveProgramsBase<DeriveProgramsPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::NN)))
      return signalPassFailure();
    ModelOp model = getOperation();
    if (failed(deriveEval(model)))
      return signalPassFailure();
    derivePredict(model);
    for (auto program : model.getBody().getOps<ProgramOp>()) {
      StringRef name = program.getSymName();
      if (name != "predict")
        eraseOps<OutputOp>(program);
      if (name != "train")
        setInferenceMode(program);
      if (failed(prune(program)))
        return signalPassFailure();
      recordRanges(program);
    }
    pruneVariables(model);
  }

private:
  static ProgramOp lookup(ModelOp model, StringRef name) {
    return dyn_cast_or_null<ProgramOp>(SymbolTable::lookupSymbolIn(model, name));
  }

  static ProgramOp cloneTrain(ModelOp model, StringRef name) {
    OpBuilder atEnd = OpBuilder::atBlockEnd(&model.getBody().front());
    auto clone = cast<ProgramOp>(atEnd.clone(*lookup(model, "train")));
    clone.setSymName(name);
    return clone;
  }

  static LogicalResult deriveEval(ModelOp model) {
    if (!lookup(model, "train") || lookup(model, "eval"))
      return success();
    auto batch = model->getAttrOfType<IntegerAttr>("batch");
    if (!batch)
      return model.emitOpError("needs the attribute `batch`, the rows per rank, to derive @eval");
    ProgramOp eval = cloneTrain(model, "eval");
    eraseOps<AssignOp>(eval);
    setInferenceMode(eval); // norms in training mode mix the rows
    RowMask mask(eval.getBody().front(), batch.getInt(), [&](OpBuilder &builder) {
      return readScalar(builder, eval.getLoc(), model, "valid_rows");
    });
    WalkResult result = eval.walk([&](Operation *op) -> WalkResult {
      if (auto loss = dyn_cast<LossOp>(op))
        return leaveOutPadding(loss, mask);
      if (auto metric = dyn_cast<MetricOp>(op))
        return leaveOutPadding(metric, mask);
      return success();
    });
    return failure(result.wasInterrupted());
  }

  template <typename Sink> static LogicalResult leaveOutPadding(Sink sink, RowMask &mask) {
    Value sum = sink.getSum(), count = sink.getCount();
    if (std::string reason = mask.apply(sum, count); !reason.empty())
      return sink.emitOpError("has ")
             << reason << "; reduce per-row values by nn.reduce_sum, or write @eval";
    sink.getSumMutable().assign(sum);
    sink.getCountMutable().assign(count);
    return success();
  }

  static void derivePredict(ModelOp model) {
    ProgramOp train = lookup(model, "train");
    if (!train || lookup(model, "predict") || train.getBody().getOps<OutputOp>().empty())
      return;
    ProgramOp predict = cloneTrain(model, "predict");
    eraseOps<AssignOp, LossOp, MetricOp>(predict);
    predict->removeAttr("formulas");
  }
};
} // namespace
