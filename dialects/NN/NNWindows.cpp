// Rules of nn ops for windows: the axes of a result from those of the operands.
//
// Zeros that a layer pads with stand in for what a whole image would have beyond the tile. They lie
// within [low, high] of every element that they reach, since low <= 0 on the first and high >= 0 on
// the last element of every value; so the bounds are all that is needed.

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace dlc::nn;

using Result = std::optional<Axes>;

static bool follows(const Axis &axis) { return axis.follows(); }

static ArrayRef<int64_t> shapeOf(Value value) { return tensorType(value).getShape(); }

static std::optional<Axis> mergeTwo(const Axis &a, const Axis &b) {
  if (!a.follows() && !b.follows())
    return a.kind == Axis::Uniform ? b : a;
  if (a.kind == Axis::Uniform)
    return b;
  if (b.kind == Axis::Uniform)
    return a;
  if (a.kind != b.kind || a.spatial != b.spatial || !(a.step == b.step))
    return std::nullopt;
  Axis hull = a;
  hull.low = std::min(a.low, b.low);
  hull.high = std::max(a.high, b.high);
  return hull;
}

/// The axes of what reads two values of one shape, element by element.
static Result mergeAll(ArrayRef<Axis> a, ArrayRef<Axis> b, WindowQuery &windows) {
  Axes result;
  for (auto [one, other] : llvm::zip_equal(a, b)) {
    std::optional<Axis> merged = mergeTwo(one, other);
    if (!merged)
      return windows.refuse("combines pixels with values that have fixed places in the image");
    result.push_back(*merged);
  }
  return result;
}

Result dlc::nn::mergeAxes(ValueRange operands, WindowQuery &windows, int64_t joined) {
  Axes result(windows(operands.front()));
  for (Value operand : operands.drop_front()) {
    Result merged = mergeAll(result, windows(operand), windows);
    if (!merged)
      return std::nullopt;
    result = *merged;
  }
  if (joined >= 0) {
    if (result[joined].follows())
      return windows.refuse("joins images side by side along axis " + Twine(joined));
    result[joined].kind = Axis::Other;
  }
  return result;
}

//===- Layers ---------------------------------------------------------------------------------===//

/// A layer is a function of a window if its parameters are the same everywhere and its channels are
/// no axis of the image; says why it is not.
static bool isWindowed(Operation *op, WindowQuery &windows) {
  for (Value parameter : op->getOperands().drop_front())
    if (llvm::any_of(windows(parameter), follows)) {
      windows.refuse("has parameters that are computed of the image");
      return false;
    }
  if (windows(op->getOperand(0))[1].follows()) {
    windows.refuse("takes an axis of the image for its channels");
    return false;
  }
  return true;
}

/// Element i of a spatial axis reads `reach` + 1 elements from stride * i - padding on.
template <typename Op> static void slide(Op op, ArrayRef<int64_t> reach, Axes &axes) {
  for (size_t d = 0; d < reach.size(); ++d) {
    Axis &axis = axes[d + 2];
    axis.kind = axis.follows() ? Axis::Follows : Axis::Other;
    axis.low = axis.low - axis.step * op.getPaddingLow()[d];
    axis.high = axis.high + axis.step * (reach[d] - op.getPaddingLow()[d]);
    axis.step = axis.step * op.getStrides()[d];
  }
}

Result ConvOp::followWindows(WindowQuery &windows) {
  if (!isWindowed(*this, windows))
    return std::nullopt;
  Axes axes(windows(getX()));
  axes[1].kind = Axis::Other;
  SmallVector<int64_t> reach;
  for (auto [dilation, extent] : llvm::zip(getDilations(), shapeOf(getWeight()).drop_front(2)))
    reach.push_back(dilation * (extent - 1));
  slide(*this, reach, axes);
  return axes;
}

/// Element o reads the elements (o + padding - dilation * j) / stride, j in the kernel, that exist.
Result ConvTransposeOp::followWindows(WindowQuery &windows) {
  if (!isWindowed(*this, windows))
    return std::nullopt;
  Axes axes(windows(getX()));
  axes[1].kind = Axis::Other;
  auto kernel = shapeOf(getWeight()).drop_front(2);
  for (size_t d = 0; d < kernel.size(); ++d) {
    Axis &axis = axes[d + 2];
    axis.kind = axis.follows() ? Axis::Follows : Axis::Other;
    int64_t padding = getPaddingLow()[d], reach = getDilations()[d] * (kernel[d] - 1);
    axis.step = axis.step / getStrides()[d];
    axis.low = axis.low + axis.step * (padding - reach);
    axis.high = axis.high + axis.step * padding;
  }
  return axes;
}

Result MaxPoolOp::followWindows(WindowQuery &windows) {
  Axes axes(windows(getX()));
  slide(*this, llvm::map_to_vector(getKernel(), [](int64_t extent) { return extent - 1; }), axes);
  return axes;
}

Result AvgPoolOp::followWindows(WindowQuery &windows) {
  Axes axes(windows(getX()));
  for (auto [d, extent] : llvm::enumerate(getKernel()))
    if (getAdaptive() && extent > 1 && axes[d + 2].follows())
      return windows.refuse("divides the image along axis " + Twine(d + 2) +
                            " into a fixed number of parts");
  slide(*this, llvm::map_to_vector(getKernel(), [](int64_t extent) { return extent - 1; }), axes);
  return axes;
}

/// Element o = q scale + r reads element q, or those on both sides of (o + 1/2) / scale - 1/2: q -
/// 1 and q in the first half of a step, q and q + 1 in the second.
Result UpsampleOp::followWindows(WindowQuery &windows) {
  Axes axes(windows(getX()));
  for (size_t d = 0; d < getScale().size(); ++d) {
    Axis &axis = axes[d + 2];
    int64_t scale = getScale()[d];
    if (!getLinear()) {
      axis.low = axis.low - axis.step * Fraction(scale - 1, scale);
    } else if (scale > 1) {
      axis.low = axis.low - axis.step * Fraction(scale + (scale - 2) / 2, scale);
      axis.high = axis.high + axis.step * Fraction(scale - (scale + 1) / 2, scale);
    }
    axis.step = axis.step / scale;
  }
  return axes;
}

/// Element q f + r comes from element q, as from repetition; the inverse takes f neighbours.
Result PixelShuffleOp::followWindows(WindowQuery &windows) {
  if (windows(getX())[1].follows())
    return windows.refuse("takes an axis of the image for its channels");
  Axes axes(windows(getX()));
  auto factor = static_cast<int64_t>(getFactor());
  for (Axis &axis : MutableArrayRef(axes).drop_front(2)) {
    axis.kind = axis.follows() ? Axis::Follows : Axis::Other;
    if (getInverse()) {
      axis.high = axis.high + axis.step * (factor - 1);
      axis.step = axis.step * factor;
    } else {
      axis.low = axis.low - axis.step * Fraction(factor - 1, factor);
      axis.step = axis.step / factor;
    }
  }
  axes[1].kind = Axis::Other;
  return axes;
}

Result BatchNormOp::followWindows(WindowQuery &windows) {
  if (getTraining())
    return windows.refuse("takes statistics over the whole image");
  if (!isWindowed(*this, windows))
    return std::nullopt;
  return Axes(windows(getX()));
}

Result GroupNormOp::followWindows(WindowQuery &windows) {
  return windows.refuse("takes statistics over the whole image");
}

//===- Movements and reductions ---------------------------------------------------------------===//

Result ConstantOp::followWindows(WindowQuery &) {
  Axis axis;
  axis.kind = splatValue(getResult()) ? Axis::Uniform : Axis::Other;
  return Axes(tensorType(getResult()).getRank(), axis);
}

Result IotaOp::followWindows(WindowQuery &) {
  Axis axis;
  axis.kind = Axis::Uniform;
  Axes result(tensorType(getResult()).getRank(), axis);
  result[getDim()].kind = Axis::Other;
  return result;
}

Result ConcatOp::followWindows(WindowQuery &windows) {
  return mergeAxes(getInputs(), windows, static_cast<int64_t>(getDim()));
}

static Result reduce(Value x, ArrayRef<int64_t> dims, WindowQuery &windows) {
  Axes result;
  for (auto [i, axis] : llvm::enumerate(windows(x)))
    if (!llvm::is_contained(dims, static_cast<int64_t>(i)))
      result.push_back(axis);
    else if (axis.follows())
      return windows.refuse("reads the whole image along axis " + Twine(i));
  return result;
}

Result ReduceSumOp::followWindows(WindowQuery &windows) {
  return reduce(getX(), getDims(), windows);
}

Result ReduceMaxOp::followWindows(WindowQuery &windows) {
  return reduce(getX(), getDims(), windows);
}

/// Each pixel's logits with its label.
Result SoftmaxCrossEntropyOp::followWindows(WindowQuery &windows) {
  Result pixels = reduce(getLogits(), {1}, windows);
  return pixels ? mergeAll(*pixels, windows(getLabel()), windows) : std::nullopt;
}

Result BroadcastOp::followWindows(WindowQuery &windows) {
  Axis uniform;
  uniform.kind = Axis::Uniform;
  Axes result(tensorType(getY()).getRank(), uniform);
  for (auto [i, to] : llvm::enumerate(getDims()))
    result[to] = windows(getX())[i];
  return result;
}

/// Keeps dimensions that stay whole; one that follows and repeats f times becomes one of a f-th of
/// the step (upsampling by repetition). Dimensions of extent 1 come and go where they do not
/// follow.
Result ReshapeOp::followWindows(WindowQuery &windows) {
  static constexpr StringLiteral mixes = "mixes the axes of the image with others";
  ArrayRef<int64_t> from = shapeOf(getX()), to = shapeOf(getY());
  ArrayRef<Axis> axes = windows(getX());
  Axes result(to.size());
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    if ((from[i] == 1) != (to[j] == 1) && (to[j] == 1 || !axes[i].follows())) {
      ++(to[j] == 1 ? j : i);
      continue;
    }
    size_t firstFrom = i, firstTo = j;
    int64_t left = from[i++], right = to[j++];
    while (left != right)
      left < right ? left *= from[i++] : right *= to[j++];
    const Axis &first = axes[firstFrom];
    bool repeats = i == firstFrom + 2 && axes[i - 1].kind == Axis::Uniform;
    if (j == firstTo + 1 && (i == firstFrom + 1 || repeats)) {
      result[firstTo] = first;
      int64_t times = repeats ? from[i - 1] : 1;
      result[firstTo].step = first.step / times;
      result[firstTo].low = first.low - first.step * Fraction(times - 1, times);
    } else if (llvm::any_of(axes.slice(firstFrom, i - firstFrom), follows)) {
      return windows.refuse(mixes);
    }
  }
  if (llvm::any_of(axes.drop_front(i), follows))
    return windows.refuse(mixes);
  return result;
}

Result TransposeOp::followWindows(WindowQuery &windows) {
  return llvm::map_to_vector(getPermutation(), [&](int64_t from) { return windows(getX())[from]; });
}

Result PadOp::followWindows(WindowQuery &windows) {
  Axes axes(windows(getX()));
  for (auto [axis, low, high] : llvm::zip(axes, getLow(), getHigh())) {
    if (axis.kind == Axis::Uniform && low + high > 0)
      axis.kind = Axis::Other;
    axis.low = axis.low - axis.step * low;
    axis.high = axis.high - axis.step * low;
  }
  return axes;
}

/// What is cut off at an edge may be read beyond the edge of a tile.
Result SliceOp::followWindows(WindowQuery &windows) {
  ArrayRef<Axis> axes = windows(getX());
  for (auto [i, axis] : llvm::enumerate(axes))
    if (axis.follows() && getSize()[i] != shapeOf(getX())[i])
      return windows.refuse("cuts the image along axis " + Twine(i));
  return Axes(axes);
}
