// Rules of composite ops: normalisation, losses, projections to one channel and sums as elementwise
// ops, broadcasts and reductions.
//
// Per-channel statistics are formed in f64: sums of x and x^2 lose nothing that the variance needs,
// and one pass over x gives both.

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace dlc::nn;

namespace {
/// Builds chains of ops in one place: values in, values out.
struct Ops {
  Ops(OpBuilder &builder, Operation *op) : builder(builder), loc(op->getLoc()) {}

  template <typename Op, typename... Operands> Value make(Operands... operands) {
    return Op::create(builder, loc, operands...)->getResult(0);
  }
  Value constant(Value like, double value) {
    return splat(builder, loc, logicalType(tensorType(like)), value);
  }
  Value scaled(Value x, double factor) { return make<MulOp>(x, constant(x, factor)); }
  Value cast(Value x, Type element) {
    if (tensorType(x).getElementType() == element)
      return x;
    return CastOp::create(builder, loc, RankedTensorType::get(tensorType(x).getShape(), element),
                          x);
  }
  Value wide(Value x) { return cast(x, builder.getF64Type()); }
  /// Repeats along all dimensions of `like` but `dim`.
  Value along(Value x, int64_t dim, Value like) {
    auto type = RankedTensorType::get(tensorType(like).getShape(), tensorType(x).getElementType());
    return BroadcastOp::create(builder, loc, type, x, builder.getDenseI64ArrayAttr(dim));
  }
  Value reshaped(Value x, ArrayRef<int64_t> shape) {
    return make<ReshapeOp>(RankedTensorType::get(shape, tensorType(x).getElementType()), x);
  }
  Value sum(Value x, ArrayRef<int64_t> dims) {
    return ReduceSumOp::create(builder, loc, x, builder.getDenseI64ArrayAttr(dims));
  }
  Value rowMaximum(Value x) {
    return ReduceMaxOp::create(builder, loc, x, builder.getDenseI64ArrayAttr({1}));
  }

  OpBuilder &builder;
  Location loc;
};
} // namespace

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
static Value alongChannels(Ops &ops, Value x, Value like) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  shape.erase(shape.begin() + 1);
  auto type = RankedTensorType::get(tensorType(like).getShape(), tensorType(x).getElementType());
  return BroadcastOp::create(ops.builder, ops.loc, type, ops.reshaped(x, shape),
                             ops.builder.getDenseI64ArrayAttr(allButChannels(like)));
}

/// Products are not rounded to 16 bits.
static Value atLeastF32(Ops &ops, Value x) {
  bool isNarrow = elementBytes(tensorType(x).getElementType()) < 4;
  return isNarrow ? ops.cast(x, ops.builder.getF32Type()) : x;
}

SmallVector<Value> ConvOp::decompose(OpBuilder &builder) {
  if (!isProjection(*this, getWeight()))
    return {};
  Ops ops(builder, *this);
  Value x = atLeastF32(ops, getX()), weight = atLeastF32(ops, getWeight());
  Value perChannel = ops.reshaped(weight, tensorType(x).getDimSize(1));
  Value sum = ops.sum(ops.make<MulOp>(x, ops.along(perChannel, 1, x)), {1});
  Value y = ops.reshaped(sum, tensorType(getY()).getShape());
  if (getBias())
    y = ops.make<AddOp>(y, ops.along(atLeastF32(ops, getBias()), 1, y));
  if (getRelu())
    y = ops.make<ReluOp>(y);
  return {ops.cast(y, tensorType(getY()).getElementType())};
}

SmallVector<Value> ConvGradDataOp::decompose(OpBuilder &builder) {
  if (!isProjection(*this, getWeight()))
    return {};
  Ops ops(builder, *this);
  Value dy = atLeastF32(ops, getDy()), weight = atLeastF32(ops, getWeight());
  Value perChannel = ops.reshaped(weight, tensorType(getDx()).getDimSize(1));
  Value dx = ops.make<MulOp>(alongChannels(ops, dy, getDx()), ops.along(perChannel, 1, getDx()));
  return {ops.cast(dx, tensorType(getDx()).getElementType())};
}

SmallVector<Value> ConvGradFilterOp::decompose(OpBuilder &builder) {
  if (!isProjection(*this, getDw()))
    return {};
  Ops ops(builder, *this);
  Value x = atLeastF32(ops, getX()), dy = atLeastF32(ops, getDy());
  Value sum = ops.sum(ops.make<MulOp>(x, alongChannels(ops, dy, x)), allButChannels(x));
  Value dw = ops.reshaped(sum, tensorType(getDw()).getShape());
  return {ops.cast(dw, tensorType(getDw()).getElementType())};
}

//===- Means over windows ---------------------------------------------------------------------===//

// Pooling and upsampling are linear along each spatial dimension apart, so they are done one
// dimension after the other: a tensor is then [L, S, T], and S is taken apart in steps.

/// A dimension of a tensor, and how many elements are ahead of it and behind it.
namespace {
struct Line {
  Line(Value x, size_t dim) : shape(tensorType(x).getShape()), dim(dim) {
    for (int64_t extent : ArrayRef(shape).take_front(dim))
      lead *= extent;
    for (int64_t extent : ArrayRef(shape).drop_front(dim + 1))
      trail *= extent;
  }
  int64_t extent() const { return shape[dim]; }
  /// [L, S / parts, parts, T].
  SmallVector<int64_t> split(int64_t parts) const { return {lead, extent() / parts, parts, trail}; }
  /// The tensor's shape with another extent.
  SmallVector<int64_t> resized(int64_t extent) const {
    SmallVector<int64_t> result(shape);
    result[dim] = extent;
    return result;
  }

  SmallVector<int64_t> shape;
  size_t dim;
  int64_t lead = 1, trail = 1;
};

/// Windows along one dimension: `count` of them, from stride * i - low on.
struct LineWindows {
  int64_t kernel, stride, low, count;

  bool areElements() const { return kernel == 1 && stride == 1 && low == 0; }
  /// Steps of a stride that the windows reach into.
  int64_t steps() const { return count + (kernel - 1) / stride; }
};
} // namespace

static Value slice(Ops &ops, Value x, ArrayRef<int64_t> start, ArrayRef<int64_t> size) {
  return SliceOp::create(ops.builder, ops.loc, x, start, size);
}

/// Zeros around; a negative number cuts.
static Value padded(Ops &ops, Value x, size_t dim, int64_t low, int64_t high) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  if (low < 0 || high < 0) {
    SmallVector<int64_t> start(shape.size(), 0), size(shape);
    start[dim] = std::max<int64_t>(0, -low);
    size[dim] += std::min<int64_t>(0, low) + std::min<int64_t>(0, high);
    x = slice(ops, x, start, size);
  }
  if (low <= 0 && high <= 0)
    return x;
  SmallVector<int64_t> before(shape.size(), 0), behind(before);
  before[dim] = std::max<int64_t>(0, low);
  behind[dim] = std::max<int64_t>(0, high);
  return PadOp::create(ops.builder, ops.loc, x, before, behind, llvm::APFloat(0.0));
}

static Value sumOf(Ops &ops, ArrayRef<Value> values) {
  Value sum = values.front();
  for (Value value : values.drop_front())
    sum = ops.make<AddOp>(sum, value);
  return sum;
}

/// Sums of the elements of each window.
static Value sumWindows(Ops &ops, Value x, size_t dim, const LineWindows &windows) {
  if (windows.areElements())
    return x;
  Line line(x, dim);
  int64_t steps = windows.steps();
  Value whole =
      padded(ops, x, dim, windows.low, steps * windows.stride - line.extent() - windows.low);
  Value parts = ops.reshaped(whole, Line(whole, dim).split(windows.stride));
  if (windows.kernel == windows.stride)
    return ops.reshaped(ops.sum(parts, {2}), line.resized(windows.count));
  SmallVector<Value> terms;
  for (int64_t j = 0; j < windows.kernel; ++j)
    terms.push_back(slice(ops, parts, {0, j / windows.stride, j % windows.stride, 0},
                          {line.lead, windows.count, 1, line.trail}));
  return ops.reshaped(sumOf(ops, terms), line.resized(windows.count));
}

/// Each element of `dy` at all places of its window, in a dimension of `extent`.
static Value spreadWindows(Ops &ops, Value dy, size_t dim, const LineWindows &windows,
                           int64_t extent) {
  if (windows.areElements())
    return dy;
  Line line(dy, dim);
  int64_t steps = windows.steps(), stride = windows.stride;
  Value each = ops.reshaped(dy, {line.lead, windows.count, 1, line.trail});
  SmallVector<Value> terms;
  if (windows.kernel == stride) {
    auto type = RankedTensorType::get({line.lead, steps, stride, line.trail},
                                      tensorType(dy).getElementType());
    Value flat = ops.reshaped(dy, {line.lead, windows.count, line.trail});
    terms.push_back(BroadcastOp::create(ops.builder, ops.loc, type, flat,
                                        ops.builder.getDenseI64ArrayAttr({0, 1, 3})));
  } else {
    for (int64_t j = 0; j < windows.kernel; ++j) {
      SmallVector<int64_t> low{0, j / stride, j % stride, 0};
      SmallVector<int64_t> high{0, steps - windows.count - low[1], stride - 1 - low[2], 0};
      terms.push_back(PadOp::create(ops.builder, ops.loc, each, low, high, llvm::APFloat(0.0)));
    }
  }
  Value whole = ops.reshaped(sumOf(ops, terms), line.resized(steps * stride));
  return padded(ops, whole, dim, -windows.low, extent + windows.low - steps * stride);
}

template <typename Op>
static LineWindows windowsAlong(Op op, size_t spatial, ArrayRef<int64_t> pooled) {
  return {op.getKernel()[spatial], op.getStrides()[spatial], op.getPaddingLow()[spatial],
          pooled[spatial + 2]};
}

/// What the sum of a window is divided by, for each element of `pooled`.
template <typename Op> static Value windowSizes(Ops &ops, Op op, Value pooled, Value image) {
  double elements = 1;
  Value sizes;
  auto type = tensorType(pooled);
  for (size_t d = 0; d < op.getKernel().size(); ++d) {
    auto kernel = static_cast<double>(op.getKernel()[d]);
    auto low = static_cast<double>(op.getPaddingLow()[d]);
    if (op.getCountPadding() || (low == 0 && op.getPaddingHigh()[d] == 0)) {
      elements *= kernel;
      continue;
    }
    auto index = type.clone(ops.builder.getI32Type());
    Value place = ops.cast(IotaOp::create(ops.builder, ops.loc, index, static_cast<int64_t>(d + 2)),
                           type.getElementType());
    Value begin = ops.make<SubOp>(ops.scaled(place, static_cast<double>(op.getStrides()[d])),
                                  ops.constant(pooled, low));
    Value end = ops.make<AddOp>(begin, ops.constant(pooled, kernel));
    auto extent = static_cast<double>(tensorType(image).getDimSize(static_cast<unsigned>(d + 2)));
    Value size = ops.make<SubOp>(ops.make<MinOp>(end, ops.constant(pooled, extent)),
                                 ops.make<MaxOp>(begin, ops.constant(pooled, 0)));
    sizes = sizes ? ops.make<MulOp>(sizes, size) : size;
  }
  Value constant = ops.constant(pooled, elements);
  return sizes ? ops.make<MulOp>(sizes, constant) : constant;
}

SmallVector<Value> AvgPoolOp::decompose(OpBuilder &builder) {
  Ops ops(builder, *this);
  Value sum = atLeastF32(ops, getX());
  for (size_t d = 0; d < getKernel().size(); ++d)
    sum = sumWindows(ops, sum, d + 2, windowsAlong(*this, d, tensorType(getY()).getShape()));
  Value mean = ops.make<DivOp>(sum, windowSizes(ops, *this, sum, getX()));
  return {ops.cast(mean, tensorType(getY()).getElementType())};
}

SmallVector<Value> AvgPoolGradOp::decompose(OpBuilder &builder) {
  Ops ops(builder, *this);
  Value dy = atLeastF32(ops, getDy());
  Value dx = ops.make<DivOp>(dy, windowSizes(ops, *this, dy, getDx()));
  for (size_t d = 0; d < getKernel().size(); ++d)
    dx = spreadWindows(ops, dx, d + 2, windowsAlong(*this, d, tensorType(getDy()).getShape()),
                       tensorType(getDx()).getDimSize(static_cast<unsigned>(d + 2)));
  return {ops.cast(dx, tensorType(getDx()).getElementType())};
}

//===- Upsampling -----------------------------------------------------------------------------===//

/// Place `phase` of a step of `scale` lies this far behind the element whose step it is, or ahead
/// of it if negative, in elements.
static double distanceOf(int64_t phase, int64_t scale) {
  return (static_cast<double>(phase) + 0.5) / static_cast<double>(scale) - 0.5;
}

/// [L, S, 1, T]: the neighbour of each element, ahead of it (-1) or behind it (1); the outermost
/// one is its own.
static Value neighbour(Ops &ops, Value x, int64_t side) {
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  int64_t extent = shape[1];
  if (extent == 1)
    return x;
  SmallVector<int64_t> one{shape[0], 1, 1, shape[3]}, most{shape[0], extent - 1, 1, shape[3]};
  Value edge = slice(ops, x, {0, side < 0 ? 0 : extent - 1, 0, 0}, one);
  Value rest = slice(ops, x, {0, side < 0 ? 0 : 1, 0, 0}, most);
  SmallVector<Value> values{edge, rest};
  if (side > 0)
    std::swap(values[0], values[1]);
  return ConcatOp::create(ops.builder, ops.loc, values, 1);
}

/// The gradient of x in neighbour(x, side).
static Value toNeighbour(Ops &ops, Value dy, int64_t side) {
  ArrayRef<int64_t> shape = tensorType(dy).getShape();
  int64_t extent = shape[1];
  if (extent == 1)
    return dy;
  SmallVector<int64_t> one{shape[0], 1, 1, shape[3]}, most{shape[0], extent - 1, 1, shape[3]};
  Value edge = slice(ops, dy, {0, side < 0 ? 0 : extent - 1, 0, 0}, one);
  Value rest = slice(ops, dy, {0, side < 0 ? 1 : 0, 0, 0}, most);
  Value ofEdge = padded(ops, edge, 1, side < 0 ? 0 : extent - 1, side < 0 ? extent - 1 : 0);
  Value ofRest = padded(ops, rest, 1, side < 0 ? 0 : 1, side < 0 ? 1 : 0);
  return ops.make<AddOp>(ofEdge, ofRest);
}

static Value enlarged(Ops &ops, Value x, size_t dim, int64_t scale, bool linear) {
  if (scale == 1)
    return x;
  Line line(x, dim);
  SmallVector<int64_t> shape = line.resized(line.extent() * scale);
  if (!linear) {
    auto type = RankedTensorType::get({line.lead, line.extent(), scale, line.trail},
                                      tensorType(x).getElementType());
    Value flat = ops.reshaped(x, {line.lead, line.extent(), line.trail});
    return ops.reshaped(BroadcastOp::create(ops.builder, ops.loc, type, flat,
                                            ops.builder.getDenseI64ArrayAttr({0, 1, 3})),
                        shape);
  }
  Value own = ops.reshaped(x, line.split(1));
  Value ahead = neighbour(ops, own, -1), behind = neighbour(ops, own, 1);
  SmallVector<Value> phases;
  for (int64_t phase = 0; phase < scale; ++phase) {
    double distance = distanceOf(phase, scale), share = std::abs(distance);
    Value beside = distance < 0 ? ahead : behind;
    phases.push_back(
        share == 0 ? own : ops.make<AddOp>(ops.scaled(own, 1 - share), ops.scaled(beside, share)));
  }
  return ops.reshaped(ConcatOp::create(ops.builder, ops.loc, phases, 2), shape);
}

static Value reduced(Ops &ops, Value dy, size_t dim, int64_t scale, bool linear) {
  if (scale == 1)
    return dy;
  Line line(dy, dim);
  SmallVector<int64_t> shape = line.resized(line.extent() / scale);
  Value parts = ops.reshaped(dy, line.split(scale));
  if (!linear)
    return ops.reshaped(ops.sum(parts, {2}), shape);
  SmallVector<Value> own, ahead, behind;
  for (int64_t phase = 0; phase < scale; ++phase) {
    double distance = distanceOf(phase, scale);
    Value part =
        slice(ops, parts, {0, 0, phase, 0}, {line.lead, line.extent() / scale, 1, line.trail});
    own.push_back(ops.scaled(part, 1 - std::abs(distance)));
    if (distance != 0)
      (distance < 0 ? ahead : behind).push_back(ops.scaled(part, std::abs(distance)));
  }
  return ops.reshaped(sumOf(ops, {sumOf(ops, own), toNeighbour(ops, sumOf(ops, ahead), -1),
                                  toNeighbour(ops, sumOf(ops, behind), 1)}),
                      shape);
}

SmallVector<Value> UpsampleOp::decompose(OpBuilder &builder) {
  Ops ops(builder, *this);
  Value y = getLinear() ? atLeastF32(ops, getX()) : getX();
  for (auto [d, scale] : llvm::enumerate(getScale()))
    y = enlarged(ops, y, d + 2, scale, getLinear());
  return {ops.cast(y, tensorType(getY()).getElementType())};
}

SmallVector<Value> UpsampleGradOp::decompose(OpBuilder &builder) {
  Ops ops(builder, *this);
  Value dx = atLeastF32(ops, getDy());
  for (auto [d, scale] : llvm::enumerate(getScale()))
    dx = reduced(ops, dx, d + 2, scale, getLinear());
  return {ops.cast(dx, tensorType(getDx()).getElementType())};
}

//===- Batch norm -----------------------------------------------------------------------------===//

static double elementsPerChannel(Value x) {
  return static_cast<double>(tensorType(x).getNumElements()) /
         static_cast<double>(tensorType(x).getDimSize(1));
}

static Value inverseDeviation(Ops &ops, Value wideVar, double epsilon) {
  return ops.make<RsqrtOp>(ops.make<AddOp>(wideVar, ops.constant(wideVar, epsilon)));
}

SmallVector<Value> BatchNormOp::decompose(OpBuilder &builder) {
  Ops ops(builder, *this);
  Value x = getX();
  Type element = tensorType(x).getElementType(),
       statistics = tensorType(getMean()).getElementType();
  Value mean = ops.wide(getRunningMean()), var = ops.wide(getRunningVar());
  SmallVector<Value> results{Value(), getRunningMean(), getRunningVar()};
  if (getTraining()) {
    double scale = 1.0 / elementsPerChannel(x);
    Value wide = ops.wide(x);
    mean = ops.scaled(ops.sum(wide, allButChannels(x)), scale);
    Value square = ops.scaled(ops.sum(ops.make<MulOp>(wide, wide), allButChannels(x)), scale);
    Value difference = ops.make<SubOp>(square, ops.make<MulOp>(mean, mean));
    var = ops.make<MaxOp>(difference, ops.constant(difference, 0));
    results[1] = ops.cast(mean, statistics);
    results[2] = ops.cast(var, statistics);
  }
  Value a = ops.make<MulOp>(ops.wide(getScale()),
                            inverseDeviation(ops, var, getEpsilon().convertToDouble()));
  Value b = ops.make<SubOp>(ops.wide(getBias()), ops.make<MulOp>(mean, a));
  Value scaled = ops.make<MulOp>(x, ops.along(ops.cast(a, element), 1, x));
  results[0] = ops.make<AddOp>(scaled, ops.along(ops.cast(b, element), 1, x));
  return results;
}

// dx = A (dy - sum(dy) / m - (x - mean) sum(dy (x - mean)) / (m (var + epsilon))), A = scale /
// sqrt(var + epsilon). Unlike the squares of the variance, the products here do not cancel: each
// may be rounded to f32 before it is added up.
SmallVector<Value> BatchNormGradOp::decompose(OpBuilder &builder) {
  Ops ops(builder, *this);
  Value x = atLeastF32(ops, getX()), dy = atLeastF32(ops, getDy());
  Type element = tensorType(x).getElementType(),
       parameter = tensorType(getScale()).getElementType();
  double count = elementsPerChannel(x);
  auto channel = [&](Value value) { return ops.along(ops.cast(value, element), 1, x); };
  Value inverse = inverseDeviation(ops, ops.wide(getVar()), getEpsilon().convertToDouble());
  Value deviation = ops.make<SubOp>(x, channel(getMean()));
  Value sumDy = ops.sum(ops.wide(dy), allButChannels(x));
  Value sumProduct = ops.sum(ops.wide(ops.make<MulOp>(dy, deviation)), allButChannels(x));
  Value dscale = ops.make<MulOp>(sumProduct, inverse);
  Value a = ops.make<MulOp>(ops.wide(getScale()), inverse);
  Value b = ops.scaled(ops.make<MulOp>(ops.make<MulOp>(a, inverse), dscale), -1.0 / count);
  Value c = ops.scaled(ops.make<MulOp>(a, sumDy), -1.0 / count);
  Value dx = ops.make<AddOp>(ops.make<MulOp>(dy, channel(a)),
                             ops.make<AddOp>(ops.make<MulOp>(deviation, channel(b)), channel(c)));
  return {ops.cast(dx, tensorType(getDx()).getElementType()), ops.cast(dscale, parameter),
          ops.cast(sumDy, parameter)};
}

//===- Softmax cross entropy ------------------------------------------------------------------===//

/// One value per row, repeated for each class of `like`.
static Value alongClasses(Ops &ops, Value x, Value like) {
  auto type = RankedTensorType::get(tensorType(like).getShape(), tensorType(x).getElementType());
  return BroadcastOp::create(ops.builder, ops.loc, type, x,
                             ops.builder.getDenseI64ArrayAttr(allButChannels(like)));
}

/// logits - max of the row: softmax does not change, exp cannot overflow.
static Value shifted(Ops &ops, Value logits) {
  return ops.make<SubOp>(logits, alongClasses(ops, ops.rowMaximum(logits), logits));
}

/// Where column = label.
static Value atLabel(Ops &ops, Value label, Value logits) {
  auto type =
      RankedTensorType::get(tensorType(logits).getShape(), tensorType(label).getElementType());
  Value column = IotaOp::create(ops.builder, ops.loc, type, 1);
  return CompareOp::create(ops.builder, ops.loc, Comparison::EQ, column,
                           alongClasses(ops, label, logits));
}

SmallVector<Value> SoftmaxCrossEntropyOp::decompose(OpBuilder &builder) {
  Ops ops(builder, *this);
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
  Ops ops(builder, *this);
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
LayerKind SoftmaxCrossEntropyOp::layerKind() { return LayerKind::Loss; }
LayerKind SoftmaxCrossEntropyGradOp::layerKind() { return LayerKind::Loss; }

//===- Sums -----------------------------------------------------------------------------------===//

/// Dimensions of one element are summed over, too, and shaped again: so sums over the same elements
/// look alike, and one cluster can hold them.
SmallVector<Value> ReduceSumOp::decompose(OpBuilder &builder) {
  Ops ops(builder, *this);
  SmallVector<int64_t> dims;
  for (auto [dim, extent] : llvm::enumerate(tensorType(getX()).getShape()))
    if (extent == 1 || llvm::is_contained(getDims(), dim))
      dims.push_back(static_cast<int64_t>(dim));
  if (getDims() == ArrayRef(dims))
    return {};
  return {ops.reshaped(ops.sum(getX(), dims), tensorType(getY()).getShape())};
}
