// Normalisation: by the statistics of a batch, or of each sample.
#include "dialects/NN/Scalars.h"
#include "frontend/operators/Emission.h"

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

//===- Of a batch -----------------------------------------------------------------------------===//

/// running = (1 - momentum) running + momentum * observed, torch.nn's momentum.
static void updateRunning(const Emission &call, StringRef leaf, mlir::Value running,
                          mlir::Value observed, double momentum) {
  Graph &graph = call.graph;
  mlir::RankedTensorType type = nn::tensorType(running);
  mlir::Value kept =
      nn::MulOp::create(graph.builder, graph.loc, running, graph.constant(type, 1 - momentum));
  mlir::Value added =
      nn::MulOp::create(graph.builder, graph.loc, observed, graph.constant(type, momentum));
  call.assign(leaf, nn::AddOp::create(graph.builder, graph.loc, kept, added));
}

/// n / (n - 1), from the variance of `perRank` values to that of what they are drawn from: [C].
/// With `sync`, n counts the values of all ranks.
static mlir::Value unbiasedFactor(const Emission &call, int64_t perRank,
                                  mlir::RankedTensorType type, bool sync) {
  Graph &graph = call.graph;
  auto count = static_cast<double>(perRank);
  if (!sync)
    return graph.constant(type, count / (count - 1));
  mlir::RankedTensorType scalar = graph.f32({});
  mlir::Value inverseWorld =
      nn::readScalar(graph.builder, graph.loc, graph.model(), "inverse_world");
  mlir::Value rest =
      nn::SubOp::create(graph.builder, graph.loc, graph.constant(scalar, count), inverseWorld);
  mlir::Value factor =
      nn::DivOp::create(graph.builder, graph.loc, graph.constant(scalar, count), rest);
  return nn::BroadcastOp::create(graph.builder, graph.loc, type, factor, ArrayRef<int64_t>{});
}

Result emitBatchNorm(Emission &call) {
  const Value &operand = call["x"];
  if (!operand.isTensor() || shapeOf(operand.asTensor()).size() < 2)
    return call.error("x",
                      "batch_norm expects a tensor [N, C, spatial...], got " + describe(operand));
  mlir::Value x = call.tensor("x");
  int64_t channels = shapeOf(x)[1];
  int64_t perChannel = elementCount(shapeOf(x)) / channels;
  FailureOr<double> epsilon = call.real("eps", 1e-12, 1);
  FailureOr<double> momentum = call.real("momentum", 0, 1);
  FailureOr<double> initScale = call.real("init_scale", -1e6, 1e6);
  if (failed(epsilon) || failed(momentum) || failed(initScale))
    return failure();
  if (call.graph.isTraining() && perChannel < 2)
    return call.error("x", "batch_norm needs more than one value per channel to train, got " +
                               describe(operand));
  Graph &graph = call.graph;
  mlir::Value scale = nullptr;
  if (call.flag("scale")) {
    FailureOr<mlir::Value> made =
        call.parameter("weight", {channels}, call.constantInit(*initScale));
    if (failed(made))
      return failure();
    scale = *made;
  } else {
    scale = graph.constant(graph.f32({channels}), 1);
  }
  FailureOr<mlir::Value> bias = call.parameter("bias", {channels}, call.constantInit(0));
  if (failed(bias))
    return failure();
  FailureOr<mlir::Value> mean = call.state("running_mean", {channels}, 0);
  FailureOr<mlir::Value> variance = call.state("running_var", {channels}, 1);
  if (failed(mean) || failed(variance))
    return failure();
  bool sync = call.flag("sync") && graph.isTraining();
  auto norm = nn::BatchNormOp::create(graph.builder, graph.loc, x, scale, *bias, *mean, *variance,
                                      graph.builder.getF64FloatAttr(*epsilon),
                                      graph.builder.getBoolAttr(graph.isTraining()),
                                      sync ? graph.builder.getUnitAttr() : mlir::UnitAttr());
  if (graph.isTraining()) {
    updateRunning(call, "running_mean", *mean, norm.getMean(), *momentum);
    mlir::Value factor = unbiasedFactor(call, perChannel, graph.f32({channels}), sync);
    mlir::Value observed = nn::MulOp::create(graph.builder, graph.loc, norm.getVar(), factor);
    updateRunning(call, "running_var", *variance, observed, *momentum);
  }
  return Value(mlir::Value(norm.getY()));
}

//===- Of a sample ----------------------------------------------------------------------------===//

static LogicalResult checkNormalised(const Emission &call) {
  const Value &operand = call["x"];
  if (operand.isTensor() && shapeOf(operand.asTensor()).size() >= 2)
    return success();
  return call.error("x",
                    call.name() + " expects a tensor [N, C, spatial...], got " + describe(operand));
}

/// Normalises groups of channels of each sample; weight and bias have the shape `parameters`.
static Result normalise(const Emission &call, mlir::Value x, int64_t groups,
                        ArrayRef<int64_t> parameters) {
  ArrayRef<int64_t> shape = shapeOf(x);
  FailureOr<double> epsilon = call.real("eps", 1e-12, 1);
  if (failed(epsilon))
    return failure();
  if (elementCount(shape) == shape[0] * groups)
    return call.error("x", call.name() + " needs more than one value to take a mean of, got " +
                               describe(call["x"]) + " in groups of one value");
  FailureOr<mlir::Value> scale = call.parameter("weight", parameters, call.constantInit(1));
  if (failed(scale))
    return failure();
  FailureOr<mlir::Value> bias = call.parameter("bias", parameters, call.constantInit(0));
  if (failed(bias))
    return failure();
  Graph &graph = call.graph;
  auto norm = nn::GroupNormOp::create(graph.builder, graph.loc, x, *scale, *bias,
                                      graph.builder.getI64IntegerAttr(groups),
                                      graph.builder.getF64FloatAttr(*epsilon));
  return Value(mlir::Value(norm.getY()));
}

Result emitGroupNorm(Emission &call) {
  if (failed(checkNormalised(call)))
    return failure();
  mlir::Value x = call.tensor("x");
  int64_t channels = shapeOf(x)[1];
  int64_t groups = call.integer("groups");
  if (groups < 1 || channels % groups != 0)
    return call.error("groups", "groups must divide the channels, " + Twine(channels) + ", got " +
                                    Twine(groups));
  return normalise(call, x, groups, {channels});
}

Result emitInstanceNorm(Emission &call) {
  FailureOr<mlir::Value> x = call.image("x");
  if (failed(x))
    return failure();
  int64_t channels = shapeOf(*x)[1];
  return normalise(call, *x, channels, {channels});
}

Result emitLayerNorm(Emission &call) {
  if (failed(checkNormalised(call)))
    return failure();
  mlir::Value x = call.tensor("x");
  SmallVector<int64_t> sample(shapeOf(x).drop_front());
  return normalise(call, x, 1, sample);
}

} // namespace dlc::fe
