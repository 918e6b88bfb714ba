// dlc-simplify: the dialect's folders and the patterns below to a fixed point, then equal
// subexpressions. Invariant: no pattern changes how a value is rounded, so that the pass can run
// anywhere.

#include "dialects/NN/Role.h"
#include "passes/Passes.h"
#include "passes/nn/CombineEqual.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_SIMPLIFY
#include "passes/Passes.h.inc"
} // namespace dlc

//===- Constants ------------------------------------------------------------------------------===//

/// The op on splats as one f64 operation; nothing for other ops.
static std::optional<double> evaluate(Operation *op, ArrayRef<double> x) {
  return TypeSwitch<Operation *, std::optional<double>>(op)
      .Case([&](AddOp) { return x[0] + x[1]; })
      .Case([&](SubOp) { return x[0] - x[1]; })
      .Case([&](MulOp) { return x[0] * x[1]; })
      .Case([&](DivOp) { return x[0] / x[1]; })
      .Case([&](NegOp) { return -x[0]; })
      .Default(std::nullopt);
}

namespace {
/// Arithmetic on splats. Rounding f64 results of f32 operands to f32 is exact rounding (f64 has
/// more than twice the digits), so the constant has the bits that the kernel would have computed.
struct FoldSplats : RewritePattern {
  explicit FoldSplats(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<AddOp, SubOp, MulOp, DivOp, NegOp>(op))
      return rewriter.notifyMatchFailure(op, "no arithmetic");
    SmallVector<double> operands;
    for (Value operand : op->getOperands()) {
      std::optional<double> value = splatValue(operand);
      if (!value)
        return rewriter.notifyMatchFailure(op, "operand is no splat");
      operands.push_back(*value);
    }
    auto type = tensorType(op->getResult(0));
    rewriter.replaceOpWithNewOp<ConstantOp>(op, type, *evaluate(op, operands));
    return success();
  }
};

//===- Casts ----------------------------------------------------------------------------------===//

/// True if every value of `from` is a value of `to`.
bool isExact(Type from, Type to) {
  if (from.isInteger(1))
    return true;
  auto toFloat = dyn_cast<FloatType>(to);
  if (auto fromFloat = dyn_cast<FloatType>(from)) {
    if (!toFloat)
      return false;
    const llvm::fltSemantics &a = fromFloat.getFloatSemantics(), &b = toFloat.getFloatSemantics();
    return llvm::APFloat::isRepresentableBy(a, b);
  }
  unsigned digits = from.getIntOrFloatBitWidth() - 1;
  return toFloat ? digits <= toFloat.getFPMantissaWidth()
                 : from.getIntOrFloatBitWidth() <= to.getIntOrFloatBitWidth();
}

struct MergeCasts : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CastOp op, PatternRewriter &rewriter) const override {
    if (op.getX().getType() == op.getType()) {
      rewriter.replaceOp(op, op.getX());
      return success();
    }
    auto producer = op.getX().getDefiningOp<CastOp>();
    if (!producer || !isExact(tensorType(producer.getX()).getElementType(),
                              tensorType(op.getX()).getElementType()))
      return rewriter.notifyMatchFailure(op, "no exact cast before it");
    rewriter.replaceOpWithNewOp<CastOp>(op, op.getType(), producer.getX());
    return success();
  }
};

//===- Movements ------------------------------------------------------------------------------===//

struct MergeBroadcasts : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    auto producer = op.getX().getDefiningOp<BroadcastOp>();
    if (!producer)
      return rewriter.notifyMatchFailure(op, "no broadcast before it");
    SmallVector<int64_t> dims;
    for (int64_t dim : producer.getDims())
      dims.push_back(op.getDims()[dim]);
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), producer.getX(), dims);
    return success();
  }
};

struct MergeReshapes : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto producer = op.getX().getDefiningOp<ReshapeOp>();
    if (!producer)
      return rewriter.notifyMatchFailure(op, "no reshape before it");
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), producer.getX());
    return success();
  }
};

struct MergeTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    if (llvm::equal(op.getPermutation(), llvm::seq<int64_t>(0, op.getPermutation().size())) &&
        op.getX().getType() == op.getType()) {
      rewriter.replaceOp(op, op.getX());
      return success();
    }
    auto producer = op.getX().getDefiningOp<TransposeOp>();
    if (!producer)
      return rewriter.notifyMatchFailure(op, "no transpose before it");
    SmallVector<int64_t> permutation;
    for (int64_t dim : op.getPermutation())
      permutation.push_back(producer.getPermutation()[dim]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), producer.getX(), permutation);
    return success();
  }
};

/// Gradients of a tensor that is concatenated step by step are slices of slices, as deep as there
/// are steps.
struct MergeSlices : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    auto producer = op.getX().getDefiningOp<SliceOp>();
    if (!producer)
      return rewriter.notifyMatchFailure(op, "no slice before it");
    SmallVector<int64_t> start(op.getStart());
    for (auto [at, first] : llvm::zip(start, producer.getStart()))
      at += first;
    rewriter.replaceOpWithNewOp<SliceOp>(op, op.getType(), producer.getX(), start, op.getSize());
    return success();
  }
};

//===- Masks ----------------------------------------------------------------------------------===//

/// The mask of a ReLU that is pooled: where a window's gradient goes, the ReLU's result is the
/// window's maximum. So the smaller gradient is masked by the smaller tensor.
struct MaskBeforePooling : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SelectOp op, PatternRewriter &rewriter) const override {
    auto positive = op.getCondition().getDefiningOp<CompareOp>();
    auto grad = op.getA().getDefiningOp<MaxPoolGradOp>();
    if (!positive || positive.getPredicate() != Comparison::GT || !grad || !grad->hasOneUse() ||
        splatValue(positive.getB()) != 0.0 || splatValue(op.getB()) != 0.0)
      return rewriter.notifyMatchFailure(op, "no mask of a pooling's gradient");
    auto pool = grad.getIndex().getDefiningOp<MaxPoolOp>();
    if (!pool || pool.getX() != positive.getA())
      return rewriter.notifyMatchFailure(op, "the mask is not that of what was pooled");
    Value zero = splat(rewriter, op.getLoc(), tensorType(grad.getDy()), 0);
    Value condition = CompareOp::create(rewriter, op.getLoc(), Comparison::GT, pool.getY(), zero);
    Value masked = SelectOp::create(rewriter, op.getLoc(), condition, grad.getDy(), zero);
    rewriter.replaceOpWithNewOp<MaxPoolGradOp>(op, op.getType(), masked, grad.getIndex(),
                                               grad.getKernel(), grad.getStrides(),
                                               grad.getPaddingLow(), grad.getPaddingHigh());
    return success();
  }
};

//===- Identities -----------------------------------------------------------------------------===//

/// The operand that an op passes on unchanged, or null.
Value passedOn(Operation *op) {
  return TypeSwitch<Operation *, Value>(op)
      .Case([](SliceOp slice) { return slice.getX(); }) // of the whole, as the types are equal
      .Case([](PadOp pad) { return pad.getX(); })       // by nothing, likewise
      .Case([](ConcatOp concat) -> Value {
        return concat.getInputs().size() == 1 ? concat.getInputs()[0] : Value();
      })
      .Case([](ReduceSumOp sum) { return sum.getX(); }) // over no dimension
      .Case([](ReduceMaxOp max) { return max.getX(); })
      .Case([](DropoutOp dropout) -> Value {
        return dropout.getRate().isZero() ? dropout.getX() : Value();
      })
      .Case([](NegOp neg) -> Value {
        auto inner = neg.getX().getDefiningOp<NegOp>();
        return inner ? inner.getX() : Value();
      })
      .Case([](SelectOp select) -> Value {
        if (select.getA() == select.getB())
          return select.getA();
        std::optional<double> condition = splatValue(select.getCondition());
        return condition ? (*condition != 0 ? select.getA() : select.getB()) : Value();
      })
      .Default(Value());
}

struct RemoveIdentities : RewritePattern {
  explicit RemoveIdentities(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    Value value = passedOn(op);
    if (!value || value.getType() != op->getResult(0).getType())
      return rewriter.notifyMatchFailure(op, "not the identity");
    rewriter.replaceOp(op, value);
    return success();
  }
};

//===- Pass -----------------------------------------------------------------------------------===//

class SimplifyPass : public dlc::impl::SimplifyBase<SimplifyPass> {
public:
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    set.add<FoldSplats, MergeCasts, MergeBroadcasts, MergeReshapes, MergeTransposes, MergeSlices,
            MaskBeforePooling, RemoveIdentities>(context);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    for (auto program : getOperation().getBody().getOps<ProgramOp>()) {
      RoleStamp stamp;
      GreedyRewriteConfig config;
      if (failed(applyPatternsGreedily(program, patterns, config.setListener(&stamp))))
        return signalPassFailure();
      combineEqual(program);
    }
  }

private:
  FrozenRewritePatternSet patterns;
};
} // namespace
