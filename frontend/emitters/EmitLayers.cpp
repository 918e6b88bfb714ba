// Convolutions, dense layers, pooling and upsampling.
#include "frontend/operators/Emission.h"

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

namespace {
/// Geometry of windows that slide over the spatial axes.
struct Windows {
  SmallVector<int64_t> kernel, stride, dilation, low, high;
  SmallVector<int64_t> output; // spatial extents

  /// Extent of the dilated kernel.
  int64_t reach(size_t axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }
  /// An odd element of padding goes to the end.
  void pad(size_t axis, int64_t total) {
    low[axis] = total / 2;
    high[axis] = total - total / 2;
  }
};
} // namespace

/// kernel, stride and dilation (1 if the operator has none); not yet padding and output.
static FailureOr<Windows> windowsOf(const Emission &call, size_t axes, bool dilated) {
  Windows windows;
  FailureOr<SmallVector<int64_t>> kernel = call.perAxis("kernel", axes, 1);
  if (failed(kernel))
    return failure();
  windows.kernel = *kernel;
  windows.stride = *kernel; // pooling's default
  if (!call["stride"].isAbsent()) {
    FailureOr<SmallVector<int64_t>> stride = call.perAxis("stride", axes, 1);
    if (failed(stride))
      return failure();
    windows.stride = *stride;
  }
  windows.dilation.assign(axes, 1);
  if (!dilated)
    return windows;
  FailureOr<SmallVector<int64_t>> dilation = call.perAxis("dilation", axes, 1);
  if (failed(dilation))
    return failure();
  windows.dilation = *dilation;
  return windows;
}

static bool isSame(const Value &padding) {
  return padding.isString() && padding.asString() == "same";
}

/// Padding as the call gives it; none where it names a rule.
static LogicalResult padAsGiven(const Emission &call, size_t axes, Windows &windows) {
  windows.low.assign(axes, 0);
  if (!call["padding"].isString()) {
    FailureOr<SmallVector<int64_t>> given = call.perAxis("padding", axes, 0);
    if (failed(given))
      return failure();
    windows.low = *given;
  }
  windows.high = windows.low;
  return success();
}

/// Padding and output extents of a convolution or pooling. `same` is TensorFlow's rule: output =
/// input / stride, rounded up.
static LogicalResult padForward(const Emission &call, ArrayRef<int64_t> spatial, Windows &windows) {
  size_t axes = spatial.size();
  if (failed(padAsGiven(call, axes, windows)))
    return failure();
  for (size_t i = 0; i < axes; ++i) {
    int64_t stride = windows.stride[i];
    if (isSame(call["padding"])) {
      int64_t output = (spatial[i] - 1) / stride + 1;
      windows.pad(i, std::max<int64_t>(0, (output - 1) * stride + windows.reach(i) - spatial[i]));
    }
    int64_t room = spatial[i] + windows.low[i] + windows.high[i] - windows.reach(i);
    if (room < 0)
      return call.error("", call.name() + "'s window of " + Twine(windows.reach(i)) +
                                " is larger than its padded input of " +
                                Twine(room + windows.reach(i)) + " along spatial axis " + Twine(i));
    windows.output.push_back(room / stride + 1);
  }
  return success();
}

/// Padding and output extents of a transposed convolution; `same` gives output = input * stride.
static LogicalResult padTransposed(const Emission &call, ArrayRef<int64_t> spatial,
                                   Windows &windows) {
  size_t axes = spatial.size();
  bool same = isSame(call["padding"]);
  FailureOr<SmallVector<int64_t>> extra = call.perAxis("output_padding", axes, 0);
  if (failed(extra) || failed(padAsGiven(call, axes, windows)))
    return failure();
  for (size_t i = 0; i < axes; ++i) {
    int64_t stride = windows.stride[i];
    int64_t full = (spatial[i] - 1) * stride + windows.reach(i);
    int64_t output = full - 2 * windows.low[i] + (*extra)[i];
    if (same) {
      output = spatial[i] * stride;
      windows.pad(i, std::max<int64_t>(0, full - output));
    }
    if ((*extra)[i] >= stride)
      return call.error("output_padding", "output_padding must be smaller than the stride, " +
                                              Twine(stride) + ", got " + Twine((*extra)[i]));
    if (same && (*extra)[i] != 0)
      return call.error("output_padding", "padding = same leaves nothing to output_padding");
    if (output < 1 || windows.low[i] >= windows.reach(i))
      return call.error("padding", "padding of " + Twine(windows.low[i]) +
                                       " leaves nothing of the output along spatial axis " +
                                       Twine(i));
    windows.output.push_back(output);
  }
  return success();
}

/// weight and, unless `bias = false`, bias of a layer.
static LogicalResult weightAndBias(const Emission &call, ArrayRef<int64_t> shape, int64_t channels,
                                   mlir::Value &weight, mlir::Value &bias) {
  FailureOr<nn::InitializerAttr> init = call.weightInit(shape);
  if (failed(init))
    return failure();
  FailureOr<mlir::Value> made = call.parameter("weight", shape, *init);
  if (failed(made))
    return failure();
  weight = *made;
  if (!call.flag("bias"))
    return success();
  made = call.parameter("bias", {channels}, call.constantInit(0));
  if (failed(made))
    return failure();
  bias = *made;
  return success();
}

static FailureOr<int64_t> groupsOf(const Emission &call, int64_t inputs, int64_t outputs) {
  FailureOr<int64_t> groups = call.integer("groups", 1, 1 << 20);
  if (failed(groups))
    return failure();
  if (inputs % *groups != 0 || outputs % *groups != 0)
    return call.error("groups", "groups must divide the channels of input and output, " +
                                    Twine(inputs) + " and " + Twine(outputs) + ", got " +
                                    Twine(*groups));
  return *groups;
}

namespace {
/// What conv and conv_transpose have in common.
struct Convolution {
  mlir::Value x, weight, bias;
  Windows windows;
  int64_t groups = 1;
  SmallVector<int64_t> resultShape;
};
} // namespace

/// The arguments of a convolution; `pad` completes the windows.
static FailureOr<Convolution>
convolutionOf(Emission &call, bool transposed,
              llvm::function_ref<LogicalResult(Emission &, ArrayRef<int64_t>, Windows &)> pad) {
  FailureOr<mlir::Value> x = call.image("x");
  if (failed(x))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(*x);
  FailureOr<int64_t> channels = call.integer("channels", 1, maxChannels);
  FailureOr<Windows> windows = windowsOf(call, shape.size() - 2, /*dilated=*/true);
  if (failed(channels) || failed(windows) || failed(pad(call, shape.drop_front(2), *windows)))
    return failure();
  FailureOr<int64_t> groups = groupsOf(call, shape[1], *channels);
  if (failed(groups))
    return failure();
  SmallVector<int64_t> weightShape{*channels, shape[1] / *groups};
  if (transposed)
    weightShape = {shape[1], *channels / *groups};
  weightShape.append(windows->kernel);
  Convolution conv{*x, {}, {}, *windows, *groups, {shape[0], *channels}};
  conv.resultShape.append(windows->output);
  if (failed(call.checkShape(conv.resultShape)) ||
      failed(weightAndBias(call, weightShape, *channels, conv.weight, conv.bias)))
    return failure();
  return conv;
}

Result emitConv(Emission &call) {
  FailureOr<Convolution> conv = convolutionOf(call, /*transposed=*/false, padForward);
  if (failed(conv))
    return failure();
  const Windows &windows = conv->windows;
  auto op =
      nn::ConvOp::create(call.graph.builder, call.loc(), conv->x, conv->weight, conv->bias,
                         windows.stride, windows.low, windows.high, windows.dilation, conv->groups);
  return Value(mlir::Value(op));
}

Result emitConvTranspose(Emission &call) {
  FailureOr<Convolution> conv = convolutionOf(call, /*transposed=*/true, padTransposed);
  if (failed(conv))
    return failure();
  const Windows &windows = conv->windows;
  Graph &graph = call.graph;
  mlir::RankedTensorType type = graph.f32(conv->resultShape);
  // Libraries add a bias to a transposed convolution element by element; whatever reads the sum
  // adds it in passing.
  mlir::Value y = nn::ConvTransposeOp::create(
      graph.builder, call.loc(), type, conv->x, conv->weight, /*bias=*/mlir::Value(),
      windows.stride, windows.low, windows.high, windows.dilation, conv->groups);
  if (conv->bias) {
    mlir::Value each =
        nn::BroadcastOp::create(graph.builder, call.loc(), type, conv->bias, ArrayRef<int64_t>{1});
    y = nn::AddOp::create(graph.builder, call.loc(), y, each);
  }
  return Value(y);
}

Result emitDense(Emission &call) {
  mlir::Value x = call.tensor("x");
  ArrayRef<int64_t> shape = shapeOf(x);
  if (shape.size() != 2)
    return call.error("x", "dense expects a tensor [N, features] (flatten makes one), got " +
                               describe(call["x"]));
  FailureOr<int64_t> channels = call.integer("channels", 1, maxChannels);
  mlir::Value weight, bias;
  if (failed(channels) || failed(call.checkShape({shape[0], *channels})) ||
      failed(weightAndBias(call, {*channels, shape[1]}, *channels, weight, bias)))
    return failure();
  auto product = nn::MatmulOp::create(call.graph.builder, call.loc(), x, weight, bias,
                                      /*transpose_a=*/false, /*transpose_b=*/true);
  return Value(mlir::Value(product));
}

namespace {
struct Pooling {
  mlir::Value x;
  Windows windows;
};
} // namespace

/// Padding is smaller than the windows, so that none lies outside of the image.
static FailureOr<Pooling> poolingOf(const Emission &call) {
  FailureOr<mlir::Value> x = call.image("x");
  if (failed(x))
    return failure();
  ArrayRef<int64_t> spatial = shapeOf(*x).drop_front(2);
  FailureOr<Windows> windows = windowsOf(call, spatial.size(), /*dilated=*/false);
  if (failed(windows) || failed(padForward(call, spatial, *windows)))
    return failure();
  for (size_t i = 0; i < spatial.size(); ++i)
    if (std::max(windows->low[i], windows->high[i]) >= windows->kernel[i])
      return call.error("padding", "padding must be smaller than the window, " +
                                       Twine(windows->kernel[i]) + ", got " +
                                       Twine(windows->low[i]));
  return Pooling{*x, *windows};
}

Result emitMaxPool(Emission &call) {
  FailureOr<Pooling> pooling = poolingOf(call);
  if (failed(pooling))
    return failure();
  const auto &[x, windows] = *pooling;
  // The position of the maximum is kept in a byte.
  constexpr int64_t maxWindow = 127;
  if (elementCount(windows.kernel) > maxWindow)
    return call.error("kernel", "max_pool's window has at most " + Twine(maxWindow) +
                                    " elements (the place of its maximum is kept in a byte), got " +
                                    toText(call["kernel"]) +
                                    "; pool in steps: a window of 14 x 14 is max_pool(max_pool(x, "
                                    "kernel = 7), kernel = 2)");
  auto pool = nn::MaxPoolOp::create(call.graph.builder, call.loc(), x, windows.kernel,
                                    windows.stride, windows.low, windows.high);
  return Value(mlir::Value(pool.getY()));
}

Result emitAvgPool(Emission &call) {
  FailureOr<Pooling> pooling = poolingOf(call);
  if (failed(pooling))
    return failure();
  const auto &[x, windows] = *pooling;
  auto pool =
      nn::AvgPoolOp::create(call.graph.builder, call.loc(), x, windows.kernel, windows.stride,
                            windows.low, windows.high, call.flag("count_include_pad"));
  return Value(mlir::Value(pool));
}

Result emitUpsample(Emission &call) {
  FailureOr<mlir::Value> x = call.image("x");
  if (failed(x))
    return failure();
  FailureOr<SmallVector<int64_t>> scale = call.perAxis("scale", shapeOf(*x).size() - 2, 1);
  if (failed(scale))
    return failure();
  SmallVector<int64_t> shape(shapeOf(*x));
  for (auto [extent, factor] : llvm::zip(llvm::drop_begin(shape, 2), *scale))
    extent *= factor; // at most 2^40 times 2^16
  if (failed(call.checkShape(shape)))
    return failure();
  auto large = nn::UpsampleOp::create(call.graph.builder, call.loc(), *x, *scale,
                                      call["mode"].asString() == "linear");
  return Value(mlir::Value(large));
}

} // namespace dlc::fe
