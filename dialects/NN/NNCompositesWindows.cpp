// Composite ops over windows as slices, paddings and sums of views: means over windows, enlarged
// images, and their gradients.
//
// Where windows are tiles, which meet without overlap, all dimensions are done at once and tensors
// keep theirs, and so their layouts.

#include "dialects/NN/OpChain.h"

#include <functional>

using namespace mlir;
using namespace dlc::nn;

//===- Means over windows ---------------------------------------------------------------------===//

// Other windows are taken apart along each spatial dimension, one after the other. Where they lie
// beside each other a tensor is then [L, S, T], and S is taken apart in windows.

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
  bool stepByOne() const { return stride == 1; }
  /// Places of a window's elements beside that of the window.
  SmallVector<int64_t> places() const { return llvm::to_vector(llvm::seq(-low, kernel - low)); }
  /// Steps of a stride that the windows reach into.
  int64_t steps() const { return count + (kernel - 1) / stride; }
};
} // namespace

static Value slice(OpChain &ops, Value x, ArrayRef<int64_t> start, ArrayRef<int64_t> size) {
  return SliceOp::create(ops.builder, ops.loc, x, start, size);
}

/// Zeros around; a negative number cuts.
static Value padded(OpChain &ops, Value x, size_t dim, int64_t low, int64_t high) {
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

static Value sumOf(OpChain &ops, ArrayRef<Value> values) {
  Value sum = values.front();
  for (Value value : values.drop_front())
    sum = ops.make<AddOp>(sum, value);
  return sum;
}

/// Sum of x moved ahead by each of `shifts` along a dimension, cut to `extent` and with zeros where
/// x does not reach: the tensor keeps its dimensions, and so its layout.
static Value sumShifted(OpChain &ops, Value x, size_t dim, ArrayRef<int64_t> shifts,
                        int64_t extent) {
  SmallVector<Value> terms;
  int64_t given = Line(x, dim).extent();
  for (int64_t shift : shifts)
    if (shift < given && shift > -extent)
      terms.push_back(padded(ops, x, dim, -shift, extent - given + shift));
  return sumOf(ops, terms);
}

/// Sums of the elements of each window.
static Value sumWindows(OpChain &ops, Value x, size_t dim, const LineWindows &windows) {
  if (windows.areElements())
    return x;
  if (windows.stepByOne())
    return sumShifted(ops, x, dim, windows.places(), windows.count);
  Line line(x, dim);
  int64_t reach = (windows.count - 1) * windows.stride + 1;
  Value whole =
      padded(ops, x, dim, windows.low, reach - 1 + windows.kernel - line.extent() - windows.low);
  if (windows.kernel == windows.stride) {
    Value parts = ops.reshaped(whole, Line(whole, dim).split(windows.stride));
    return ops.reshaped(ops.sum(parts, {2}), line.resized(windows.count));
  }
  SmallVector<int64_t> start(line.shape.size(), 0), strides(line.shape.size(), 1);
  strides[dim] = windows.stride;
  SmallVector<Value> terms;
  for (int64_t &place = start[dim]; place < windows.kernel; ++place)
    terms.push_back(SubsampleOp::create(ops.builder, ops.loc,
                                        slice(ops, whole, start, line.resized(reach)), strides));
  return sumOf(ops, terms);
}

/// What is at the first `places` of each `stride` elements of a dimension, else zeros.
static Value aheadInSteps(OpChain &ops, Value x, size_t dim, int64_t places, int64_t stride) {
  SmallVector<bool> ahead;
  for (int64_t i = 0, extent = Line(x, dim).extent(); i < extent; ++i)
    ahead.push_back(i % stride < places);
  auto line = RankedTensorType::get({static_cast<int64_t>(ahead.size())}, ops.builder.getI1Type());
  Value table = ConstantOp::create(ops.builder, ops.loc, line, DenseElementsAttr::get(line, ahead));
  auto type = tensorType(x).clone(ops.builder.getI1Type());
  Value isAhead =
      BroadcastOp::create(ops.builder, ops.loc, type, table,
                          ops.builder.getDenseI64ArrayAttr({static_cast<int64_t>(dim)}));
  return ops.make<SelectOp>(isAhead, x, ops.constant(x, 0));
}

/// Each element so many times in a row, in a view, which need not keep the tensor's layout.
static Value repeatedInView(OpChain &ops, Value x, size_t dim, int64_t times) {
  Line line(x, dim);
  auto type = RankedTensorType::get({line.lead, line.extent(), times, line.trail},
                                    tensorType(x).getElementType());
  Value flat = ops.reshaped(x, {line.lead, line.extent(), line.trail});
  return ops.reshaped(BroadcastOp::create(ops.builder, ops.loc, type, flat,
                                          ops.builder.getDenseI64ArrayAttr({0, 1, 3})),
                      line.resized(line.extent() * times));
}

/// The same with its layout, where nn.repeat can.
static Value repeated(OpChain &ops, Value x, size_t dim, int64_t times) {
  SmallVector<int64_t> all(tensorType(x).getRank(), 1);
  all[dim] = times;
  if (!areFewRepeats(all))
    return repeatedInView(ops, x, dim, times);
  return RepeatOp::create(ops.builder, ops.loc, x, all);
}

/// Each element of `dy` at all places of its window, in a dimension of `extent`.
static Value spreadWindows(OpChain &ops, Value dy, size_t dim, const LineWindows &windows,
                           int64_t extent) {
  if (windows.areElements())
    return dy;
  if (windows.stepByOne()) {
    SmallVector<int64_t> shifts;
    for (int64_t place : windows.places())
      shifts.push_back(-place);
    return sumShifted(ops, dy, dim, shifts, extent);
  }
  int64_t steps = windows.steps(), stride = windows.stride;
  Value each = repeated(ops, dy, dim, stride);
  SmallVector<Value> terms;
  for (int64_t ahead = 0; ahead < windows.kernel; ahead += stride) {
    int64_t places = windows.kernel - ahead;
    Value term = places < stride ? aheadInSteps(ops, each, dim, places, stride) : each;
    terms.push_back(padded(ops, term, dim, ahead, (steps - windows.count) * stride - ahead));
  }
  return padded(ops, sumOf(ops, terms), dim, -windows.low, extent + windows.low - steps * stride);
}

//===- Tiles ----------------------------------------------------------------------------------===//

/// Whether nothing lies around the image.
template <typename Op> static bool hasNoPadding(Op op) {
  auto isZero = [](int64_t padding) { return padding == 0; };
  return llvm::all_of(op.getPaddingLow(), isZero) && llvm::all_of(op.getPaddingHigh(), isZero);
}

/// Whether windows lie beside each other and have few elements; the image may have more than all of
/// them, unlike where windowsTile.
template <typename Op> static bool areTiles(Op op) {
  return op.getKernel() == op.getStrides() && hasNoPadding(op) && areFewRepeats(op.getKernel());
}

/// Sums of tiles of an image as large as `shape` after that. Those along the first spatial
/// dimension are added first.
static Value sumTiles(OpChain &ops, Value x, ArrayRef<int64_t> tile, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> start(shape.size(), 0), size(shape), strides(shape.size(), 1);
  for (auto [dim, extent] : llvm::enumerate(tile)) {
    size[dim + 2] = (shape[dim + 2] - 1) * extent + 1;
    strides[dim + 2] = extent;
  }
  std::function<Value(size_t)> sumFirst = [&](size_t dims) -> Value {
    if (dims == 0)
      return SubsampleOp::create(ops.builder, ops.loc, slice(ops, x, start, size), strides);
    SmallVector<Value> terms;
    int64_t &place = start[dims + 1];
    for (place = 0; place < tile[dims - 1]; ++place)
      terms.push_back(sumFirst(dims - 1));
    return sumOf(ops, terms);
  };
  return sumFirst(tile.size());
}

/// Each element of `dy` in all of its tile, in an image of `shape`; zeros where there is no tile.
static Value spreadTiles(OpChain &ops, Value dy, ArrayRef<int64_t> tile, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> times{1, 1};
  times.append(tile.begin(), tile.end());
  Value image = RepeatOp::create(ops.builder, ops.loc, dy, times);
  for (size_t dim = 2; dim < shape.size(); ++dim)
    image = padded(ops, image, dim, 0, shape[dim] - Line(image, dim).extent());
  return image;
}

template <typename Op>
static LineWindows windowsAlong(Op op, size_t spatial, ArrayRef<int64_t> pooled) {
  return {op.getKernel()[spatial], op.getStrides()[spatial], op.getPaddingLow()[spatial],
          pooled[spatial + 2]};
}

/// What the sum of a window is divided by, for each element of `pooled`.
template <typename Op> static Value windowSizes(OpChain &ops, Op op, Value pooled, Value image) {
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

/// Whether there is one window, which is the whole image. Its mean needs no lines, and so the image
/// can have any layout.
template <typename Op> static bool isGlobal(Op op, Value image) {
  return op.getKernel() == tensorType(image).getShape().drop_front(2) && hasNoPadding(op);
}

SmallVector<Value> AvgPoolOp::decompose(OpBuilder &builder) {
  OpChain ops(builder, *this);
  Value sum = ops.atLeastF32(getX());
  ArrayRef<int64_t> shape = tensorType(getY()).getShape();
  if (isGlobal(*this, getX())) {
    auto spatial = llvm::to_vector(llvm::seq<int64_t>(2, tensorType(sum).getRank()));
    sum = ops.reshaped(ops.sum(sum, spatial), shape);
  } else if (areTiles(*this)) {
    sum = sumTiles(ops, sum, getKernel(), shape);
  } else {
    for (size_t d = 0; d < getKernel().size(); ++d)
      sum = sumWindows(ops, sum, d + 2, windowsAlong(*this, d, shape));
  }
  Value mean = ops.make<DivOp>(sum, windowSizes(ops, *this, sum, getX()));
  return {ops.cast(mean, tensorType(getY()).getElementType())};
}

SmallVector<Value> AvgPoolGradOp::decompose(OpBuilder &builder) {
  OpChain ops(builder, *this);
  Value dy = ops.atLeastF32(getDy());
  Value dx = ops.make<DivOp>(dy, windowSizes(ops, *this, dy, getDx()));
  ArrayRef<int64_t> shape = tensorType(getDx()).getShape();
  if (isGlobal(*this, getDx())) {
    auto type = RankedTensorType::get(shape, tensorType(dx).getElementType());
    dx = BroadcastOp::create(ops.builder, ops.loc, type, ops.reshaped(dx, shape.take_front(2)),
                             ops.builder.getDenseI64ArrayAttr({0, 1}));
  } else if (areTiles(*this)) {
    dx = spreadTiles(ops, dx, getKernel(), shape);
  } else {
    for (size_t d = 0; d < getKernel().size(); ++d)
      dx = spreadWindows(ops, dx, d + 2, windowsAlong(*this, d, tensorType(getDy()).getShape()),
                         shape[d + 2]);
  }
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
static Value neighbour(OpChain &ops, Value x, int64_t side) {
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
static Value toNeighbour(OpChain &ops, Value dy, int64_t side) {
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

static Value enlarged(OpChain &ops, Value x, size_t dim, int64_t scale, bool linear) {
  if (scale == 1)
    return x;
  if (!linear)
    return repeatedInView(ops, x, dim, scale);
  Line line(x, dim);
  Value own = ops.reshaped(x, line.split(1));
  Value ahead = neighbour(ops, own, -1), behind = neighbour(ops, own, 1);
  SmallVector<Value> phases;
  for (int64_t phase = 0; phase < scale; ++phase) {
    double distance = distanceOf(phase, scale), share = std::abs(distance);
    Value beside = distance < 0 ? ahead : behind;
    phases.push_back(
        share == 0 ? own : ops.make<AddOp>(ops.scaled(own, 1 - share), ops.scaled(beside, share)));
  }
  return ops.reshaped(ConcatOp::create(ops.builder, ops.loc, phases, 2),
                      line.resized(line.extent() * scale));
}

static Value reduced(OpChain &ops, Value dy, size_t dim, int64_t scale, bool linear) {
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
  OpChain ops(builder, *this);
  if (!getLinear() && areFewRepeats(getScale()))
    return {spreadTiles(ops, getX(), getScale(), tensorType(getY()).getShape())};
  Value y = getLinear() ? ops.atLeastF32(getX()) : getX();
  for (auto [d, scale] : llvm::enumerate(getScale()))
    y = enlarged(ops, y, d + 2, scale, getLinear());
  return {ops.cast(y, tensorType(getY()).getElementType())};
}

SmallVector<Value> UpsampleGradOp::decompose(OpBuilder &builder) {
  OpChain ops(builder, *this);
  Value dx = ops.atLeastF32(getDy());
  if (!getLinear() && areFewRepeats(getScale())) {
    dx = sumTiles(ops, dx, getScale(), tensorType(getDx()).getShape());
    return {ops.cast(dx, tensorType(getDx()).getElementType())};
  }
  for (auto [d, scale] : llvm::enumerate(getScale()))
    dx = reduced(ops, dx, d + 2, scale, getLinear());
  return {ops.cast(dx, tensorType(getDx()).getElementType())};
}

//===- Pixel shuffle --------------------------------------------------------------------------===//

/// Moves the minor part of the channels behind the spatial dimension `dim`, or back.
static Value shuffled(OpChain &ops, Value x, size_t dim, int64_t factor, bool inverse) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  shape[1] = inverse ? shape[1] * factor : shape[1] / factor;
  shape[dim] = inverse ? shape[dim] / factor : shape[dim] * factor;
  int64_t channels = inverse ? tensorType(x).getDimSize(1) : shape[1];
  int64_t between = inverse ? shape[dim] : tensorType(x).getDimSize(static_cast<unsigned>(dim));
  for (int64_t extent : ArrayRef(shape).slice(2, dim - 2))
    between *= extent;
  int64_t lead = shape[0] * channels, trail = 1;
  for (int64_t extent : ArrayRef(shape).drop_front(dim + 1))
    trail *= extent;
  SmallVector<int64_t> apart{lead, factor, between, trail};
  if (inverse)
    std::swap(apart[1], apart[2]);
  Value moved = TransposeOp::create(ops.builder, ops.loc, ops.reshaped(x, apart),
                                    ops.builder.getDenseI64ArrayAttr({0, 2, 1, 3}));
  return ops.reshaped(moved, shape);
}

SmallVector<Value> PixelShuffleOp::decompose(OpBuilder &builder) {
  OpChain ops(builder, *this);
  Value y = getX();
  auto factor = static_cast<int64_t>(getFactor());
  size_t rank = tensorType(y).getRank();
  for (size_t i = 2; i < rank; ++i)
    y = shuffled(ops, y, getInverse() ? i : rank + 1 - i, factor, getInverse());
  return {y};
}
