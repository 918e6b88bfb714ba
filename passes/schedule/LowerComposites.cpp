// dlc-lower-composites: normalisation, losses and projections to one channel as elementwise ops,
// broadcasts and reductions, so that clusters can hold them.
//
// Per-channel statistics are formed in f64: sums of x and x^2 lose nothing that the variance needs,
// and one pass over x gives both.

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
/// Builds chains of ops in one place: values in, values out.
class Ops {
public:
  Ops(RewriterBase &rewriter, Operation *op) : rewriter(rewriter), loc(op->getLoc()) {}

  template <typename Op, typename... Operands> Value make(Operands... operands) {
    return Op::create(rewriter, loc, operands...)->getResult(0);
  }
  Value constant(Value like, double value) {
    return splat(rewriter, loc, logicalType(tensorType(like)), value);
  }
  Value scaled(Value x, double factor) { return make<MulOp>(x, constant(x, factor)); }
  Value cast(Value x, Type element) {
    if (tensorType(x).getElementType() == element)
      return x;
    return CastOp::create(rewriter, loc, RankedTensorType::get(tensorType(x).getShape(), element),
                          x);
  }
  Value wide(Value x) { return cast(x, rewriter.getF64Type()); }
  /// Repeats along all dimensions of `like` but `dim`.
  Value along(Value x, int64_t dim, Value like) {
    auto type = RankedTensorType::get(tensorType(like).getShape(), tensorType(x).getElementType());
    return BroadcastOp::create(rewriter, loc, type, x, rewriter.getDenseI64ArrayAttr(dim));
  }
  Value reshaped(Value x, ArrayRef<int64_t> shape) {
    return make<ReshapeOp>(RankedTensorType::get(shape, tensorType(x).getElementType()), x);
  }
  Value sum(Value x, ArrayRef<int64_t> dims) {
    return ReduceSumOp::create(rewriter, loc, x, rewriter.getDenseI64ArrayAttr(dims));
  }
  Value rowMaximum(Value x) {
    return ReduceMaxOp::create(rewriter, loc, x, rewriter.getDenseI64ArrayAttr({1}));
  }

  RewriterBase &rewriter;
  Location loc;
};

//===- Projections to one channel -------------------------------------------------------------===//

// A convolution with one output channel and windows of one element is a sum over channels. As a
// library kernel it would write 16 channels for one in blocked layouts, read its operand alone, and
// its data gradient, a product, would be written and read once more.

/// The one place that decides: weight [1, C, 1...], stride 1, no padding.
template <typename Op> bool isProjection(Op op, Value weight) {
  auto isOne = [](int64_t value) { return value == 1; };
  auto isZero = [](int64_t value) { return value == 0; };
  ArrayRef<int64_t> shape = tensorType(weight).getShape();
  return op.getGroups() == 1 && shape[0] == 1 && llvm::all_of(shape.drop_front(2), isOne) &&
         llvm::all_of(op.getStrides(), isOne) && llvm::all_of(op.getPaddingLow(), isZero) &&
         llvm::all_of(op.getPaddingHigh(), isZero);
}

/// All dimensions but the channels'.
SmallVector<int64_t> allButChannels(Value x) {
  SmallVector<int64_t> dims{0};
  llvm::append_range(dims, llvm::seq<int64_t>(2, tensorType(x).getRank()));
  return dims;
}

/// A tensor of one channel, repeated along the channels of `like`; both in at least f32.
Value alongChannels(Ops &ops, Value x, Value like) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  shape.erase(shape.begin() + 1);
  auto type = RankedTensorType::get(tensorType(like).getShape(), tensorType(x).getElementType());
  return BroadcastOp::create(ops.rewriter, ops.loc, type, ops.reshaped(x, shape),
                             ops.rewriter.getDenseI64ArrayAttr(allButChannels(like)));
}

/// Products are not rounded to 16 bits.
Value atLeastF32(Ops &ops, Value x) {
  bool isNarrow = elementBytes(tensorType(x).getElementType()) < 4;
  return isNarrow ? ops.cast(x, ops.rewriter.getF32Type()) : x;
}

void lower(IRRewriter &rewriter, ConvOp op) {
  if (!isProjection(op, op.getWeight()))
    return;
  Ops ops(rewriter, op);
  Value x = atLeastF32(ops, op.getX()), weight = atLeastF32(ops, op.getWeight());
  Value perChannel = ops.reshaped(weight, tensorType(x).getDimSize(1));
  Value sum = ops.sum(ops.make<MulOp>(x, ops.along(perChannel, 1, x)), {1});
  Value y = ops.reshaped(sum, tensorType(op.getY()).getShape());
  if (op.getBias())
    y = ops.make<AddOp>(y, ops.along(atLeastF32(ops, op.getBias()), 1, y));
  if (op.getRelu())
    y = ops.make<ReluOp>(y);
  rewriter.replaceOp(op, ops.cast(y, tensorType(op.getY()).getElementType()));
}

void lower(IRRewriter &rewriter, ConvGradDataOp op) {
  if (!isProjection(op, op.getWeight()))
    return;
  Ops ops(rewriter, op);
  Value dy = atLeastF32(ops, op.getDy()), weight = atLeastF32(ops, op.getWeight());
  Value perChannel = ops.reshaped(weight, tensorType(op.getDx()).getDimSize(1));
  Value dx =
      ops.make<MulOp>(alongChannels(ops, dy, op.getDx()), ops.along(perChannel, 1, op.getDx()));
  rewriter.replaceOp(op, ops.cast(dx, tensorType(op.getDx()).getElementType()));
}

void lower(IRRewriter &rewriter, ConvGradFilterOp op) {
  if (!isProjection(op, op.getDw()))
    return;
  Ops ops(rewriter, op);
  Value x = atLeastF32(ops, op.getX()), dy = atLeastF32(ops, op.getDy());
  Value sum = ops.sum(ops.make<MulOp>(x, alongChannels(ops, dy, x)), allButChannels(x));
  Value dw = ops.reshaped(sum, tensorType(op.getDw()).getShape());
  rewriter.replaceOp(op, ops.cast(dw, tensorType(op.getDw()).getElementType()));
}

//===- Batch norm -----------------------------------------------------------------------------===//

double elementsPerChannel(Value x) {
  return static_cast<double>(tensorType(x).getNumElements()) /
         static_cast<double>(tensorType(x).getDimSize(1));
}

Value inverseDeviation(Ops &ops, Value wideVar, double epsilon) {
  return ops.make<RsqrtOp>(ops.make<AddOp>(wideVar, ops.constant(wideVar, epsilon)));
}

void lower(IRRewriter &rewriter, BatchNormOp op) {
  Ops ops(rewriter, op);
  Value x = op.getX();
  Type element = tensorType(x).getElementType(),
       statistics = tensorType(op.getMean()).getElementType();
  Value mean = ops.wide(op.getRunningMean()), var = ops.wide(op.getRunningVar());
  SmallVector<Value> results{Value(), op.getRunningMean(), op.getRunningVar()};
  if (op.getTraining()) {
    double scale = 1.0 / elementsPerChannel(x);
    Value wide = ops.wide(x);
    mean = ops.scaled(ops.sum(wide, allButChannels(x)), scale);
    Value square = ops.scaled(ops.sum(ops.make<MulOp>(wide, wide), allButChannels(x)), scale);
    Value difference = ops.make<SubOp>(square, ops.make<MulOp>(mean, mean));
    var = ops.make<MaxOp>(difference, ops.constant(difference, 0));
    results[1] = ops.cast(mean, statistics);
    results[2] = ops.cast(var, statistics);
  }
  Value a = ops.make<MulOp>(ops.wide(op.getScale()),
                            inverseDeviation(ops, var, op.getEpsilon().convertToDouble()));
  Value b = ops.make<SubOp>(ops.wide(op.getBias()), ops.make<MulOp>(mean, a));
  Value scaled = ops.make<MulOp>(x, ops.along(ops.cast(a, element), 1, x));
  results[0] = ops.make<AddOp>(scaled, ops.along(ops.cast(b, element), 1, x));
  rewriter.replaceOp(op, results);
}

// dx = A (dy - sum(dy) / m - (x - mean) sum(dy (x - mean)) / (m (var + epsilon))), A = scale /
// sqrt(var + epsilon). Unlike the squares of the variance, the products here do not cancel: each
// may be rounded to f32 before it is added up.
void lower(IRRewriter &rewriter, BatchNormGradOp op) {
  Ops ops(rewriter, op);
  Value x = atLeastF32(ops, op.getX()), dy = atLeastF32(ops, op.getDy());
  Type element = tensorType(x).getElementType(),
       parameter = tensorType(op.getScale()).getElementType();
  double count = elementsPerChannel(x);
  auto channel = [&](Value value) { return ops.along(ops.cast(value, element), 1, x); };
  Value inverse = inverseDeviation(ops, ops.wide(op.getVar()), op.getEpsilon().convertToDouble());
  Value deviation = ops.make<SubOp>(x, channel(op.getMean()));
  Value sumDy = ops.sum(ops.wide(dy), allButChannels(x));
  Value sumProduct = ops.sum(ops.wide(ops.make<MulOp>(dy, deviation)), allButChannels(x));
  Value dscale = ops.make<MulOp>(sumProduct, inverse);
  Value a = ops.make<MulOp>(ops.wide(op.getScale()), inverse);
  Value b = ops.scaled(ops.make<MulOp>(ops.make<MulOp>(a, inverse), dscale), -1.0 / count);
  Value c = ops.scaled(ops.make<MulOp>(a, sumDy), -1.0 / count);
  Value dx = ops.make<AddOp>(ops.make<MulOp>(dy, channel(a)),
                             ops.make<AddOp>(ops.make<MulOp>(deviation, channel(b)), channel(c)));
  rewriter.replaceOp(op, {ops.cast(dx, tensorType(op.getDx()).getElementType()),
                          ops.cast(dscale, parameter), ops.cast(sumDy, parameter)});
}

//===- Softmax cross entropy ------------------------------------------------------------------===//

/// One value per row, repeated for each class of `like`.
Value alongClasses(Ops &ops, Value x, Value like) {
  auto type = RankedTensorType::get(tensorType(like).getShape(), tensorType(x).getElementType());
  return BroadcastOp::create(ops.rewriter, ops.loc, type, x,
                             ops.rewriter.getDenseI64ArrayAttr(allButChannels(like)));
}

/// logits - max of the row: softmax does not change, exp cannot overflow.
Value shifted(Ops &ops, Value logits) {
  return ops.make<SubOp>(logits, alongClasses(ops, ops.rowMaximum(logits), logits));
}

/// Where column = label.
Value atLabel(Ops &ops, Value label, Value logits) {
  auto type =
      RankedTensorType::get(tensorType(logits).getShape(), tensorType(label).getElementType());
  Value column = IotaOp::create(ops.rewriter, ops.loc, type, 1);
  return CompareOp::create(ops.rewriter, ops.loc, Comparison::EQ, column,
                           alongClasses(ops, label, logits));
}

void lower(IRRewriter &rewriter, SoftmaxCrossEntropyOp op) {
  Ops ops(rewriter, op);
  double smoothing = op.getSmoothing().convertToDouble();
  auto classes = static_cast<double>(tensorType(op.getLogits()).getDimSize(1));
  Value shift = shifted(ops, op.getLogits());
  Value normaliser = ops.make<LogOp>(ops.sum(ops.make<ExpOp>(shift), {1}));
  Value hit = ops.make<SelectOp>(atLabel(ops, op.getLabel(), shift), shift, ops.constant(shift, 0));
  Value expected = ops.sum(hit, {1});
  if (smoothing != 0)
    expected = ops.make<AddOp>(ops.scaled(expected, 1 - smoothing),
                               ops.scaled(ops.sum(shift, {1}), smoothing / classes));
  rewriter.replaceOp(op, ops.make<SubOp>(normaliser, expected));
}

void lower(IRRewriter &rewriter, SoftmaxCrossEntropyGradOp op) {
  Ops ops(rewriter, op);
  double smoothing = op.getSmoothing().convertToDouble();
  auto classes = static_cast<double>(tensorType(op.getLogits()).getDimSize(1));
  Value exponential = ops.make<ExpOp>(shifted(ops, op.getLogits()));
  Value probability =
      ops.make<DivOp>(exponential, alongClasses(ops, ops.sum(exponential, {1}), exponential));
  Value target = ops.make<SelectOp>(atLabel(ops, op.getLabel(), exponential),
                                    ops.constant(exponential, 1 - smoothing + smoothing / classes),
                                    ops.constant(exponential, smoothing / classes));
  Value difference = ops.make<SubOp>(probability, target);
  rewriter.replaceOp(op, ops.make<MulOp>(difference, alongClasses(ops, op.getDloss(), difference)));
}

//===- Kinds ----------------------------------------------------------------------------------===//

template <typename Op> constexpr LayerKind kindOfComposite = LayerKind::Other;
template <> constexpr LayerKind kindOfComposite<BatchNormOp> = LayerKind::Norm;
template <> constexpr LayerKind kindOfComposite<BatchNormGradOp> = LayerKind::Norm;
template <> constexpr LayerKind kindOfComposite<SoftmaxCrossEntropyOp> = LayerKind::Loss;
template <> constexpr LayerKind kindOfComposite<SoftmaxCrossEntropyGradOp> = LayerKind::Loss;

//===- Sums -----------------------------------------------------------------------------------===//

/// Dimensions of one element are summed over, too, and shaped again: so sums over the same elements
/// look alike, and one cluster can hold them.
void lower(IRRewriter &rewriter, ReduceSumOp op) {
  Ops ops(rewriter, op);
  SmallVector<int64_t> dims;
  for (auto [dim, extent] : llvm::enumerate(tensorType(op.getX()).getShape()))
    if (extent == 1 || llvm::is_contained(op.getDims(), dim))
      dims.push_back(static_cast<int64_t>(dim));
  if (op.getDims() != ArrayRef(dims))
    rewriter.replaceOp(op,
                       ops.reshaped(ops.sum(op.getX(), dims), tensorType(op.getY()).getShape()));
}

class LowerCompositesPass : public dlc::impl::LowerCompositesBase<LowerCompositesPass> {
public:
  using Base::Base;
  void runOnOperation() override {
    if (failed(requireStage(getOperation(), "train")))
      return signalPassFailure();
    RoleStamp stamp;
    IRRewriter rewriter(&getContext(), &stamp);
    lowerAll<ConvOp, ConvGradDataOp, ConvGradFilterOp, BatchNormOp, BatchNormGradOp,
             SoftmaxCrossEntropyOp, SoftmaxCrossEntropyGradOp, ReduceSumOp>(rewriter, stamp);
  }

private:
  template <typename... Composite> void lowerAll(IRRewriter &rewriter, RoleStamp &stamp) {
    (getOperation().walk([&](Composite op) {
      stamp.role = roleOf(op);
      stamp.role.kind = std::max(stamp.role.kind, kindOfComposite<Composite>);
      rewriter.setInsertionPoint(op);
      lower(rewriter, op);
    }),
     ...);
  }
};
} // namespace
