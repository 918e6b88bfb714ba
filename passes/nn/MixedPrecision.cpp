// dlc-mixed-precision: decides which activations are stored in 16 bits, bf16 or f16.
//
// A reverse walk finds what convolutions and matrix products read, through the ops that only select
// or move elements: those round nothing, so they may as well run on 16 bits. A forward walk then
// gives these ops narrow operands and results. Invariants: a value that is rounded anywhere is read
// rounded everywhere, so that only its narrow form is stored and the backward pass sees what the
// forward pass used; no arithmetic happens in 16 bits; variables, inputs and losses stay as they
// are.

#include "dialects/NN/Elementwise.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_MIXEDPRECISION
#include "passes/Passes.h.inc"
} // namespace dlc

/// Yields elements of its operands, and nothing that the narrow type cannot represent.
static bool isSelection(Operation *op, FloatType narrow) {
  if (auto pad = dyn_cast<PadOp>(op)) {
    bool isInexact;
    APFloat value = pad.getValue();
    value.convert(narrow.getFloatSemantics(), APFloat::rmNearestTiesToEven, &isInexact);
    return !isInexact;
  }
  if (auto upsample = dyn_cast<UpsampleOp>(op))
    return !upsample.getLinear();
  return op->hasTrait<MovesElements>() || isa<ReluOp, MaxPoolOp>(op);
}

static bool isProduct(Operation *op) { return op->hasTrait<SumsInF32>(); }

/// What such an op may take in 16 bits. A bias is added in f32.
static MutableArrayRef<OpOperand> dataOperands(Operation *op) {
  return isProduct(op) ? op->getOpOperands().take_front(2) : op->getOpOperands();
}

static bool isF32(Value value) { return tensorType(value).getElementType().isF32(); }

namespace {
/// Rewrites one program.
class Narrowing {
public:
  Narrowing(ProgramOp program, FloatType narrow)
      : block(program.getBody().front()), builder(program.getContext()), narrowType(narrow) {}

  void run() {
    for (Operation &op : llvm::reverse(block))
      if (isProduct(&op) || (isSelection(&op, narrowType) && isF32(op.getResult(0)) &&
                             wanted.contains(op.getResult(0))))
        for (OpOperand &operand : dataOperands(&op))
          wanted.insert(operand.get());
    for (Operation &op : llvm::make_early_inc_range(block))
      if (isProduct(&op) || (isSelection(&op, narrowType) && isWorthwhile(&op)))
        narrow(&op);
    for (CastOp cast : llvm::reverse(widened))
      if (cast.use_empty())
        cast.erase();
  }

private:
  /// A selection runs in 16 bits if a reader wants it to, or if all its operands exist so.
  bool isWorthwhile(Operation *op) const {
    return wanted.contains(op->getResult(0)) ||
           llvm::all_of(op->getOperands(), [&](Value value) { return bool(narrowForm(value)); });
  }

  bool isNarrow(Value value) const { return tensorType(value).getElementType() == narrowType; }

  /// The narrow tensor that a value widens, or is; null if there is none.
  Value narrowForm(Value value) const {
    if (isNarrow(value))
      return value;
    auto cast = value.getDefiningOp<CastOp>();
    return cast && isF32(value) && isNarrow(cast.getX()) ? cast.getX() : Value();
  }

  void narrow(Operation *op) {
    if (!isF32(op->getResult(0)) || !llvm::all_of(dataOperands(op), [&](OpOperand &operand) {
          return isF32(operand.get()) || narrowForm(operand.get());
        }))
      return;
    for (OpOperand &operand : dataOperands(op))
      operand.set(rounded(operand.get()));
    Value result = op->getResult(0);
    result.setType(tensorType(result).clone(narrowType));
    builder.setInsertionPointAfter(op);
    widen(result, result);
  }

  /// Lets the users of `value`, but for the one that made `narrow` of it, read `narrow` widened.
  void widen(Value value, Value narrow) {
    auto cast =
        castTo(builder, narrow.getLoc(), narrow, builder.getF32Type()).getDefiningOp<CastOp>();
    value.replaceUsesWithIf(cast.getY(), [&](OpOperand &use) {
      return use.getOwner() != cast && use.getOwner() != narrow.getDefiningOp();
    });
    widened.push_back(cast);
  }

  /// The value in 16 bits; all readers share one cast.
  Value rounded(Value value) {
    if (Value narrow = narrowForm(value))
      return narrow;
    Value &narrow = casts[value];
    if (narrow)
      return narrow;
    Operation *producer = value.getDefiningOp();
    if (producer)
      builder.setInsertionPointAfter(producer);
    else
      builder.setInsertionPointToStart(&block);
    narrow = castTo(builder, value.getLoc(), value, narrowType);
    // Inputs and variables exist in f32 anyway.
    if (producer && !isa<ReadOp, ConstantOp>(producer))
      widen(value, narrow);
    return narrow;
  }

  Block &block;
  OpBuilder builder;
  FloatType narrowType;
  llvm::DenseSet<Value> wanted;
  llvm::DenseMap<Value, Value> casts;
  SmallVector<CastOp> widened;
};

struct MixedPrecisionPass : dlc::impl::MixedPrecisionBase<MixedPrecisionPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::NN)))
      return signalPassFailure();
    if (precision == "f32")
      return;
    ModelOp model = getOperation();
    if (precision != "bf16" && precision != "f16") {
      model.emitError("precision is '") << precision << "', expected f32, bf16 or f16";
      return signalPassFailure();
    }
    FloatType narrow = precision == "f16" ? FloatType(Float16Type::get(&getContext()))
                                          : FloatType(BFloat16Type::get(&getContext()));
    for (auto program : model.getBody().getOps<ProgramOp>())
      Narrowing(program, narrow).run();
    model->setAttr("precision", StringAttr::get(&getContext(), precision));
  }
};
} // namespace
