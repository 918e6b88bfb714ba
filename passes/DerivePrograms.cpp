// dlc-derive-programs: clone @train as far as @eval and @predict are missing, mask the clone's
// losses and metrics, then give every program its mode and drop what nothing uses.
//
// Masking finds the sum over rows by walking from the loss to the reductions that it is a linear
// function of, so that rows beyond valid_rows count nothing even where they hold NaN.

#include "passes/Passes.h"
#include "passes/Scalars.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_DERIVEPROGRAMS
#include "passes/Passes.h.inc"
} // namespace dlc

//===- Masks ----------------------------------------------------------------------------------===//

namespace {
/// Restricts the (sum, count) pairs of one program to valid rows.
class Masker {
public:
  Masker(ModelOp model, ProgramOp program, int64_t batch)
      : model(model), batch(batch), builder(program.getContext()) {
    for (BlockArgument input : program.getBody().getArguments())
      dependent.insert(input);
    for (Operation &op : program.getBody().front())
      if (llvm::any_of(op.getOperands(), [&](Value v) { return dependent.contains(v); }))
        dependent.insert(op.result_begin(), op.result_end());
  }

  /// Of nn.loss or nn.metric.
  template <typename Sink> LogicalResult mask(Sink sink) {
    Value sum = sink.getSum(), count = sink.getCount();
    // A term that no input enters (weight decay as a loss) has no rows.
    if (!dependent.contains(sum) && !dependent.contains(count))
      return success();
    Value maskedSum = maskSum(sum);
    Value maskedCount = dependent.contains(count) ? maskSum(count) : countValidRows(sink, count);
    for (auto [masked, what] : {std::pair(maskedSum, "sum"), std::pair(maskedCount, "count")})
      if (!masked)
        return sink.emitOpError()
               << "has a " << what << " that is no sum over the " << batch
               << " rows of a batch, so @eval cannot leave out rows that pad it; "
                  "reduce per-row values by nn.reduce_sum, or write @eval";
    sink.getSumMutable().assign(maskedSum);
    sink.getCountMutable().assign(maskedCount);
    return success();
  }

private:
  auto isDependent() {
    return [this](Value value) { return dependent.contains(value); };
  }

  /// The masked twin of a scalar; null if it is not linear in sums over rows.
  Value maskSum(Value value) {
    if (!dependent.contains(value))
      return value;
    Operation *op = value.getDefiningOp();
    if (auto reduction = dyn_cast_or_null<ReduceSumOp>(op))
      return maskReduction(reduction);
    bool linear =
        isa_and_nonnull<AddOp, SubOp, NegOp, CastOp>(op) ||
        (isa_and_nonnull<MulOp>(op) && llvm::count_if(op->getOperands(), isDependent()) == 1) ||
        (isa_and_nonnull<DivOp>(op) && !dependent.contains(op->getOperand(1)));
    if (!linear || tensorType(value).getRank() != 0)
      return {};
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(maskSum(operand));
    if (!llvm::all_of(operands, [](Value v) { return bool(v); }))
      return {};
    builder.setInsertionPointAfter(op);
    Operation *twin = builder.clone(*op);
    twin->setOperands(operands);
    return twin->getResult(0);
  }

  Value maskReduction(ReduceSumOp op) {
    Value x = op.getX();
    SmallVector<int64_t> dims(op.getDims());
    // All elements of a reshaped tensor are all elements of the tensor.
    auto reshape = x.getDefiningOp<ReshapeOp>();
    if (reshape && static_cast<int64_t>(dims.size()) == tensorType(x).getRank()) {
      x = reshape.getX();
      dims = llvm::to_vector(llvm::seq<int64_t>(0, tensorType(x).getRank()));
    }
    auto type = tensorType(x);
    if (tensorType(op.getY()).getRank() != 0 || type.getRank() == 0 || type.getDimSize(0) != batch)
      return {};
    Location loc = op.getLoc();
    builder.setInsertionPoint(op);
    auto maskType = RankedTensorType::get(type.getShape(), builder.getI1Type());
    Value valid = BroadcastOp::create(builder, loc, maskType, validRows(loc), ArrayRef<int64_t>{0});
    Value kept = SelectOp::create(builder, loc, valid, x, splat(builder, loc, type, 0));
    return ReduceSumOp::create(builder, loc, kept, dims);
  }

  /// [batch] x i1: row < valid_rows.
  Value validRows(Location loc) {
    auto type = RankedTensorType::get({batch}, builder.getI64Type());
    Value row = IotaOp::create(builder, loc, type, 0);
    Value bound = BroadcastOp::create(
        builder, loc, type, readScalar(builder, loc, model, "valid_rows"), ArrayRef<int64_t>{});
    return CompareOp::create(builder, loc, Comparison::LT, row, bound);
  }

  /// count / batch * valid_rows.
  template <typename Sink> Value countValidRows(Sink sink, Value count) {
    Location loc = sink.getLoc();
    auto type = tensorType(count);
    builder.setInsertionPoint(sink);
    Value perRow = DivOp::create(builder, loc, count, splat(builder, loc, type, batch));
    Value rows = CastOp::create(builder, loc, type, readScalar(builder, loc, model, "valid_rows"));
    return MulOp::create(builder, loc, rows, perRow);
  }

  ModelOp model;
  int64_t batch;
  OpBuilder builder;
  llvm::DenseSet<Value> dependent; // on an input
};

//===- Programs -------------------------------------------------------------------------------===//

template <typename... Ops> void eraseOps(ProgramOp program) {
  for (Operation &op : llvm::make_early_inc_range(program.getBody().front()))
    if (isa<Ops...>(op))
      op.erase();
}

/// Sets what eval and predict do differently from train.
void setInferenceMode(ProgramOp program) {
  for (Operation &op : llvm::make_early_inc_range(program.getBody().front())) {
    if (auto norm = dyn_cast<BatchNormOp>(op)) {
      norm.setTraining(false);
    } else if (auto dropout = dyn_cast<DropoutOp>(op)) {
      dropout.replaceAllUsesWith(dropout.getX());
      dropout.erase();
    }
  }
}

/// Tells the runtime which labels a loss can take.
void recordLabelRanges(ProgramOp program) {
  for (auto loss : program.getBody().getOps<SoftmaxCrossEntropyOp>())
    if (auto label = dyn_cast<BlockArgument>(loss.getLabel()))
      program.setArgAttr(
          label.getArgNumber(), "nn.label_range",
          Builder(program).getI64IntegerAttr(tensorType(loss.getLogits()).getDimSize(1)));
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
      recordLabelRanges(program);
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
    Masker masker(model, eval, batch.getInt());
    WalkResult result = eval.walk([&](Operation *op) -> WalkResult {
      if (auto loss = dyn_cast<LossOp>(op))
        return masker.mask(loss);
      if (auto metric = dyn_cast<MetricOp>(op))
        return masker.mask(metric);
      return success();
    });
    return failure(result.wasInterrupted());
  }

  static void derivePredict(ModelOp model) {
    ProgramOp train = lookup(model, "train");
    if (!train || lookup(model, "predict") || train.getBody().getOps<OutputOp>().empty())
      return;
    eraseOps<AssignOp, LossOp, MetricOp>(cloneTrain(model, "predict"));
  }
};
} // namespace
