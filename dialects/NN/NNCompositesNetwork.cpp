// Composite ops as elementwise ops, broadcasts and reductions: normalisation, losses, projections
// to one channel, sums.
//
// Per-channel statistics are formed in f64: sums of x and x^2 lose nothing that the variance needs,
// and one pass over x gives both.

#include "dialects/NN/OpChain.h"
#include "dialects/NN/RankMean.h"

using namespace mlir;
using namespace dlc::nn;

//===- Projections to one channel -------------------------------------------------------------===//

// A convolution with one output channel and windows of one element is a sum over channels. As a
// library kernel it would write 16 channels for one in blocked layouts, read its operand alone, and
// its data gradient, a product, would be written and read once more.

/// The one place that decides: weight [1, C, 1...], stride 1, no padding.
template <typename Op> static bool isProjection(Op op, Value weight) {
  auto isOne = [](int64_t value) { return value == 1; };
  auto isZero = [](int64_t value) { return value == 0; };
  ArrayRef<int64_t> shape = tensorType(weight).getShape();
  return op.getGroups() == 1 && shape[0] == 1 && llvm::all_of(shape.drop_front(2), isOne) &&
         llvm::all_of(op.getStrides(), isOne) && llvm::all_of(op.getPaddingLow(), isZero) &&
         llvm::all_of(op.getPaddingHigh(), isZero);
}

/// All dimensions but the channels'.
static SmallVector<int64_t> allButChannels(Value x) {
  SmallVector<int64_t> dims{0};
  llvm::append_range(dims, llvm::seq<int64_t>(2, tensorType(x).getRank()));
  return dims;
}

/// A tensor of one channel, repeated along the channels of `like`; both in at least f32.
static Value alongChannels(OpChain &ops, Value x, Value like) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  shape.erase(shape.begin() + 1);
  auto type = RankedTensorType::get(tensorType(like).getShape(), tensorType(x).getElementType());
  return BroadcastOp::create(ops.builder, ops.loc, type, ops.reshaped(x, shape),
                             ops.builder.getDenseI64ArrayAttr(allButChannels(like)));
}

SmallVector<Value> ConvOp::decompose(OpBuilder &builder) {
  if (!isProjection(*this, getWeight()))
    return {};
  OpChain ops(builder, *this);
  Value x = ops.atLeastF32(getX()), weight = ops.atLeastF32(getWeight());
  Value perChannel = ops.reshaped(weight, tensorType(x).getDimSize(1));
  Value sum = ops.sum(ops.make<MulOp>(x, ops.along(perChannel, 1, x)), {1});
  Value y = ops.reshaped(sum, tensorType(getY()).getShape());
  if (getBias())
    y = ops.make<AddOp>(y, ops.along(ops.atLeastF32(getBias()), 1, y));
  if (getRelu())
    y = ops.make<ReluOp>(y);
  return {ops.cast(y, tensorType(getY()).getElementType())};
}

SmallVector<Value> ConvGradDataOp::decompose(OpBuilder &builder) {
  if (!isProjection(*this, getWeight()))
    return {};
  OpChain ops(builder, *this);
  Value dy = ops.atLeastF32(getDy()), weight = ops.atLeastF32(getWeight());
  Value perChannel = ops.reshaped(weight, tensorType(getDx()).getDimSize(1));
  Value dx = ops.make<MulOp>(alongChannels(ops, dy, getDx()), ops.along(perChannel, 1, getDx()));
  return {ops.cast(dx, tensorType(getDx()).getElementType())};
}

SmallVector<Value> ConvGradFilterOp::decompose(OpBuilder &builder) {
  if (!isProjection(*this, getDw()))
    return {};
  OpChain ops(builder, *this);
  Value x = ops.atLeastF32(getX()), dy = ops.atLeastF32(getDy());
  Value sum = ops.sum(ops.make<MulOp>(x, alongChannels(ops, dy, x)), allButChannels(x));
  Value dw = ops.reshaped(sum, tensorType(getDw()).getShape());
  return {ops.cast(dw, tensorType(getDw()).getElementType())};
}

//===- Batch norm -----------------------------------------------------------------------------===//

static double elementsPerChannel(Value x) {
  return static_cast<double>(tensorType(x).getNumElements()) /
         static_cast<double>(tensorType(x).getDimSize(1));
}

static Value inverseDeviation(OpChain &ops, Value wideVar, double epsilon) {
  return ops.make<RsqrtOp>(ops.make<AddOp>(wideVar, ops.constant(wideVar, epsilon)));
}

/// With `sync`, what ranks average is small beside the variance as soon as the running mean is near
/// the mean: it may be in f32.
static void averageStatistics(OpChain &ops, Value runningMean, RankMean meanOverRanks, Value &mean,
                              Value &var) {
  auto average = [&](Value value) {
    return ops.wide(meanOverRanks(ops.cast(value, ops.builder.getF32Type())));
  };
  Value distance = ops.make<SubOp>(mean, runningMean);
  Value spread = average(ops.make<AddOp>(var, ops.make<MulOp>(distance, distance)));
  distance = average(distance);
  mean = ops.make<AddOp>(runningMean, distance);
  Value difference = ops.make<SubOp>(spread, ops.make<MulOp>(distance, distance));
  var = ops.make<MaxOp>(difference, ops.constant(difference, 0));
}

static SmallVector<Value> decomposeNorm(OpBuilder &builder, BatchNormOp op,
                                        RankMean meanOverRanks) {
  OpChain ops(builder, op);
  Value x = op.getX();
  Type element = tensorType(x).getElementType(),
       statistics = tensorType(op.getMean()).getElementType();
  Value mean = ops.wide(op.getRunningMean()), var = ops.wide(op.getRunningVar());
  SmallVector<Value> results{Value(), op.getRunningMean(), op.getRunningVar()};
  if (op.getTraining()) {
    Value runningMean = mean;
    double scale = 1.0 / elementsPerChannel(x);
    Value wide = ops.wide(x);
    mean = ops.scaled(ops.sum(wide, allButChannels(x)), scale);
    Value square = ops.scaled(ops.sum(ops.make<MulOp>(wide, wide), allButChannels(x)), scale);
    Value difference = ops.make<SubOp>(square, ops.make<MulOp>(mean, mean));
    var = ops.make<MaxOp>(difference, ops.constant(difference, 0));
    if (meanOverRanks)
      averageStatistics(ops, runningMean, meanOverRanks, mean, var);
    results[1] = ops.cast(mean, statistics);
    results[2] = ops.cast(var, statistics);
  }
  Value a = ops.make<MulOp>(ops.wide(op.getScale()),
                            inverseDeviation(ops, var, op.getEpsilon().convertToDouble()));
  Value b = ops.make<SubOp>(ops.wide(op.getBias()), ops.make<MulOp>(mean, a));
  Value scaled = ops.make<MulOp>(x, ops.along(ops.cast(a, element), 1, x));
  results[0] = ops.make<AddOp>(scaled, ops.along(ops.cast(b, element), 1, x));
  return results;
}

// dx = A (dy - sum(dy) / m - (x - mean) sum(dy (x - mean)) / (m (var + epsilon))), A = scale /
// sqrt(var + epsilon). Unlike the squares of the variance, the products here do not cancel: each
// may be rounded to f32 before it is added up. With `sync`, the sums in dx are those of all ranks,
// and m counts the elements of all; both are divided by the number of ranks.
static SmallVector<Value> decomposeNormGradient(OpBuilder &builder, BatchNormGradOp op,
                                                RankMean meanOverRanks) {
  OpChain ops(builder, op);
  Value x = ops.atLeastF32(op.getX()), dy = ops.atLeastF32(op.getDy());
  Type element = tensorType(x).getElementType(),
       parameter = tensorType(op.getScale()).getElementType();
  double count = elementsPerChannel(x);
  auto channel = [&](Value value) { return ops.along(ops.cast(value, element), 1, x); };
  auto overRanks = [&](Value sum) {
    if (!meanOverRanks)
      return sum;
    return ops.wide(meanOverRanks(ops.cast(sum, builder.getF32Type())));
  };
  Value inverse = inverseDeviation(ops, ops.wide(op.getVar()), op.getEpsilon().convertToDouble());
  Value deviation = ops.make<SubOp>(x, channel(op.getMean()));
  Value sumDy = ops.sum(ops.wide(dy), allButChannels(x));
  Value sumProduct = ops.sum(ops.wide(ops.make<MulOp>(dy, deviation)), allButChannels(x));
  Value dscale = ops.make<MulOp>(sumProduct, inverse);
  Value a = ops.make<MulOp>(ops.wide(op.getScale()), inverse);
  Value b =
      ops.scaled(ops.make<MulOp>(ops.make<MulOp>(a, inverse), overRanks(dscale)), -1.0 / count);
  Value c = ops.scaled(ops.make<MulOp>(a, overRanks(sumDy)), -1.0 / count);
  Value dx = ops.make<AddOp>(ops.make<MulOp>(dy, channel(a)),
                             ops.make<AddOp>(ops.make<MulOp>(deviation, channel(b)), channel(c)));
  return {ops.cast(dx, tensorType(op.getDx()).getElementType()), ops.cast(dscale, parameter),
          ops.cast(sumDy, parameter)};
}

SmallVector<Value> BatchNormOp::decompose(OpBuilder &builder) {
  return decomposeNorm(builder, *this, nullptr);
}

SmallVector<Value> BatchNormGradOp::decompose(OpBuilder &builder) {
  return decomposeNormGradient(builder, *this, nullptr);
}

SmallVector<Value> dlc::nn::decomposeOverRanks(OpBuilder &builder, Operation *op,
                                               RankMean meanOverRanks) {
  if (auto norm = dyn_cast<BatchNormOp>(op))
    return decomposeNorm(builder, norm, meanOverRanks);
  return decomposeNormGradient(builder, cast<BatchNormGradOp>(op), meanOverRanks);
}

//===- Group norm -----------------------------------------------------------------------------===//

// Sums over the spatial dimensions come first, one for each sample and channel: those run in any
// layout, since groups cut channels of small tensors alone. These are [N, groups, C / groups], or
// [N, C] where channels are groups, from the sums until they are spread over the elements.

namespace {
class Grouping {
public:
  Grouping(OpChain &ops, Value x, int64_t groups)
      : ops(ops), x(x), samples(tensorType(x).getDimSize(0)), channels(tensorType(x).getDimSize(1)),
        groups(groups), shape{samples, channels} {
    if (groups != channels)
      shape = {samples, groups, channels / groups};
  }

  double elements() const {
    return static_cast<double>(tensorType(x).getNumElements()) /
           static_cast<double>(samples * groups);
  }
  /// The sum of each channel of each sample.
  Value perChannel(Value value) {
    auto dims = llvm::to_vector(llvm::seq<int64_t>(2, tensorType(value).getRank()));
    return inShape(dims.empty() ? value : ops.sum(value, dims), shape);
  }
  /// The sums of channels over each group's, [N, groups].
  Value perGroup(Value value) { return groups == channels ? value : ops.sum(value, {2}); }
  /// The sums of channels over all samples, [C].
  Value overSamples(Value value) { return inShape(ops.sum(value, {0}), channels); }
  /// A group's number for each of its channels.
  Value toChannels(Value value) {
    return groups == channels ? value : spread(value, shape, {0, 1});
  }
  /// A channel's number for each sample.
  Value toSamples(Value value) {
    return spread(inShape(value, ArrayRef(shape).drop_front()), shape,
                  llvm::to_vector(llvm::seq<int64_t>(1, static_cast<int64_t>(shape.size()))));
  }
  /// A channel's number for each element.
  Value toElements(Value value) {
    return spread(inShape(value, {samples, channels}), tensorType(x).getShape(), {0, 1});
  }
  /// What belongs to the elements of a sample, for each sample.
  Value ofSample(Value value) {
    return spread(value, tensorType(x).getShape(),
                  llvm::to_vector(llvm::seq<int64_t>(1, tensorType(x).getRank())));
  }

private:
  Value inShape(Value value, ArrayRef<int64_t> wanted) {
    return tensorType(value).getShape() == wanted ? value : ops.reshaped(value, wanted);
  }
  Value spread(Value value, ArrayRef<int64_t> to, ArrayRef<int64_t> dims) {
    auto type = RankedTensorType::get(to, tensorType(value).getElementType());
    return BroadcastOp::create(ops.builder, ops.loc, type, value,
                               ops.builder.getDenseI64ArrayAttr(dims));
  }

  OpChain &ops;
  Value x;
  int64_t samples, channels, groups;
  SmallVector<int64_t> shape; // of channels
};
} // namespace

SmallVector<Value> GroupNormOp::decompose(OpBuilder &builder) {
  OpChain ops(builder, *this);
  Value x = ops.atLeastF32(getX());
  Type element = tensorType(x).getElementType();
  Grouping grouping(ops, x, static_cast<int64_t>(getGroups()));
  double share = 1.0 / grouping.elements();
  Value wide = ops.wide(x);
  Value mean = ops.scaled(grouping.perGroup(grouping.perChannel(wide)), share);
  Value squares = grouping.perGroup(grouping.perChannel(ops.make<MulOp>(wide, wide)));
  Value difference = ops.make<SubOp>(ops.scaled(squares, share), ops.make<MulOp>(mean, mean));
  Value var = ops.make<MaxOp>(difference, ops.constant(difference, 0));
  Value inverse = grouping.toChannels(inverseDeviation(ops, var, getEpsilon().convertToDouble()));
  Value centre = grouping.toChannels(mean);
  auto toElements = [&](Value value) { return grouping.toElements(ops.cast(value, element)); };
  Value y;
  if (tensorType(getScale()).getRank() == 1) {
    Value a = ops.make<MulOp>(ops.wide(grouping.toSamples(getScale())), inverse);
    Value b = ops.make<SubOp>(ops.wide(grouping.toSamples(getBias())), ops.make<MulOp>(centre, a));
    y = ops.make<AddOp>(ops.make<MulOp>(x, toElements(a)), toElements(b));
  } else {
    Value normal = ops.make<SubOp>(ops.make<MulOp>(x, toElements(inverse)),
                                   toElements(ops.make<MulOp>(centre, inverse)));
    Value scale = grouping.ofSample(ops.cast(getScale(), element));
    y = ops.make<AddOp>(ops.make<MulOp>(normal, scale),
                        grouping.ofSample(ops.cast(getBias(), element)));
  }
  Type statistics = tensorType(getMean()).getElementType();
  return {ops.cast(y, tensorType(getY()).getElementType()), ops.cast(mean, statistics),
          ops.cast(var, statistics)};
}

// With g = scale dy and sums over a group of m elements: dx = (g - sum(g) / m - (x - mean) sum(g (x
// - mean)) / (m (var + epsilon))) / sqrt(var + epsilon). As for batch norm, products may be rounded
// to f32 before they are added up.
SmallVector<Value> GroupNormGradOp::decompose(OpBuilder &builder) {
  OpChain ops(builder, *this);
  Value x = ops.atLeastF32(getX()), dy = ops.atLeastF32(getDy());
  Type element = tensorType(x).getElementType();
  Type parameter = tensorType(getScale()).getElementType();
  Grouping grouping(ops, x, tensorType(getMean()).getDimSize(1));
  auto toElements = [&](Value value) { return grouping.toElements(ops.cast(value, element)); };
  Value inverse = inverseDeviation(ops, ops.wide(getVar()), getEpsilon().convertToDouble());
  Value ofChannels = grouping.toChannels(inverse);
  Value deviation = ops.make<SubOp>(x, toElements(grouping.toChannels(getMean())));
  bool isPerChannel = tensorType(getScale()).getRank() == 1;
  Value weighted = dy, factor = ofChannels, dscale, dbias;
  if (!isPerChannel)
    weighted = ops.make<MulOp>(dy, grouping.ofSample(ops.cast(getScale(), element)));
  Value sum = grouping.perChannel(ops.wide(weighted));
  Value product = grouping.perChannel(ops.wide(ops.make<MulOp>(weighted, deviation)));
  if (isPerChannel) {
    dscale = grouping.overSamples(ops.make<MulOp>(product, ofChannels));
    dbias = grouping.overSamples(sum);
    Value scale = ops.wide(grouping.toSamples(getScale()));
    sum = ops.make<MulOp>(sum, scale);
    product = ops.make<MulOp>(product, scale);
    factor = ops.make<MulOp>(ofChannels, scale);
  } else {
    Value normal = ops.make<MulOp>(deviation, toElements(ofChannels));
    dscale = ops.sum(ops.wide(ops.make<MulOp>(dy, normal)), {0});
    dbias = ops.sum(ops.wide(dy), {0});
  }
  double share = -1.0 / grouping.elements();
  Value square = ops.make<MulOp>(inverse, inverse);
  Value b = ops.make<MulOp>(ops.make<MulOp>(inverse, square), grouping.perGroup(product));
  Value c = ops.make<MulOp>(inverse, grouping.perGroup(sum));
  Value correction = ops.make<AddOp>(
      ops.make<MulOp>(deviation, toElements(grouping.toChannels(ops.scaled(b, share)))),
      toElements(grouping.toChannels(ops.scaled(c, share))));
  Value dx = ops.make<AddOp>(ops.make<MulOp>(weighted, toElements(factor)), correction);
  return {ops.cast(dx, tensorType(getDx()).getElementType()), ops.cast(dscale, parameter),
          ops.cast(dbias, parameter)};
}

//===- Softmax cross entropy ------------------------------------------------------------------===//

/// One value per row, repeated for each class of `like`.
static Value alongClasses(OpChain &ops, Value x, Value like) {
  auto type = RankedTensorType::get(tensorType(like).getShape(), tensorType(x).getElementType());
  return BroadcastOp::create(ops.builder, ops.loc, type, x,
                             ops.builder.getDenseI64ArrayAttr(allButChannels(like)));
}

/// logits - max of the row: softmax does not change, exp cannot overflow.
static Value shifted(OpChain &ops, Value logits) {
  return ops.make<SubOp>(logits, alongClasses(ops, ops.rowMaximum(logits), logits));
}

/// Where column = label.
static Value atLabel(OpChain &ops, Value label, Value logits) {
  auto type =
      RankedTensorType::get(tensorType(logits).getShape(), tensorType(label).getElementType());
  Value column = IotaOp::create(ops.builder, ops.loc, type, 1);
  return CompareOp::create(ops.builder, ops.loc, Comparison::EQ, column,
                           alongClasses(ops, label, logits));
}

SmallVector<Value> SoftmaxCrossEntropyOp::decompose(OpBuilder &builder) {
  OpChain ops(builder, *this);
  double smoothing = getSmoothing().convertToDouble();
  auto classes = static_cast<double>(tensorType(getLogits()).getDimSize(1));
  Value shift = shifted(ops, getLogits());
  Value normaliser = ops.make<LogOp>(ops.sum(ops.make<ExpOp>(shift), {1}));
  Value hit = ops.make<SelectOp>(atLabel(ops, getLabel(), shift), shift, ops.constant(shift, 0));
  Value expected = ops.sum(hit, {1});
  if (smoothing != 0)
    expected = ops.make<AddOp>(ops.scaled(expected, 1 - smoothing),
                               ops.scaled(ops.sum(shift, {1}), smoothing / classes));
  return {ops.make<SubOp>(normaliser, expected)};
}

SmallVector<Value> SoftmaxCrossEntropyGradOp::decompose(OpBuilder &builder) {
  OpChain ops(builder, *this);
  double smoothing = getSmoothing().convertToDouble();
  auto classes = static_cast<double>(tensorType(getLogits()).getDimSize(1));
  Value exponential = ops.make<ExpOp>(shifted(ops, getLogits()));
  Value probability =
      ops.make<DivOp>(exponential, alongClasses(ops, ops.sum(exponential, {1}), exponential));
  Value target = ops.make<SelectOp>(atLabel(ops, getLabel(), exponential),
                                    ops.constant(exponential, 1 - smoothing + smoothing / classes),
                                    ops.constant(exponential, smoothing / classes));
  Value difference = ops.make<SubOp>(probability, target);
  return {ops.make<MulOp>(difference, alongClasses(ops, getDloss(), difference))};
}

//===- Kinds ----------------------------------------------------------------------------------===//

LayerKind BatchNormOp::layerKind() { return LayerKind::Norm; }
LayerKind BatchNormGradOp::layerKind() { return LayerKind::Norm; }
LayerKind GroupNormOp::layerKind() { return LayerKind::Norm; }
LayerKind GroupNormGradOp::layerKind() { return LayerKind::Norm; }
LayerKind SoftmaxCrossEntropyOp::layerKind() { return LayerKind::Loss; }
LayerKind SoftmaxCrossEntropyGradOp::layerKind() { return LayerKind::Loss; }

//===- Sums -----------------------------------------------------------------------------------===//

/// Sums over dimensions of one element, too, and reshapes the result. So sums over the same
/// elements look alike, and one cluster can hold them.
SmallVector<Value> ReduceSumOp::decompose(OpBuilder &builder) {
  OpChain ops(builder, *this);
  SmallVector<int64_t> dims;
  for (auto [dim, extent] : llvm::enumerate(tensorType(getX()).getShape()))
    if (extent == 1 || llvm::is_contained(getDims(), dim))
      dims.push_back(static_cast<int64_t>(dim));
  if (getDims() == ArrayRef(dims))
    return {};
  return {ops.reshaped(ops.sum(getX(), dims), tensorType(getY()).getShape())};
}
