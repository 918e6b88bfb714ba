// Tensors that are made of nothing, parameters and random numbers, and dropout.
#include "frontend/operators/Emission.h"

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

/// The extents that argument `shape` lists.
static FailureOr<SmallVector<int64_t>> shapeArgument(const Emission &call) {
  SmallVector<int64_t> shape;
  for (const Value &extent : call["shape"].asList())
    shape.push_back(extent.asInt());
  if (static_cast<int64_t>(shape.size()) > nn::maxRank ||
      any_of(shape, [](int64_t extent) { return extent < 1; }))
    return call.error("shape", call.name() + " expects at most " + Twine(nn::maxRank) +
                                   " extents from 1 on, got " + toText(call["shape"]));
  if (failed(call.checkShape(shape)))
    return failure();
  return shape;
}

Result emitParameter(Emission &call) {
  if (call.path.empty())
    return call.error("", "a parameter needs a name of its own");
  FailureOr<SmallVector<int64_t>> shape = shapeArgument(call);
  if (failed(shape))
    return failure();
  const Value &init = call["init"];
  bool isFilled = init.isNumber() || init.asString() == "zeros";
  double value = init.isNumber() ? init.asDouble() : 0;
  if (!fitsF32(value))
    return call.error("init", toText(init) + " is too large for a tensor of f32");
  if (!isFilled && shape->size() < 2)
    return call.error("init", init.asString() + " needs a shape [out, in, ...], got " +
                                  toText(call["shape"]));
  FailureOr<nn::InitializerAttr> start = call.constantInit(value);
  if (!isFilled)
    start = call.weightInit(*shape);
  if (failed(start))
    return failure();
  FailureOr<mlir::Value> made = call.parameter("", *shape, *start);
  if (failed(made))
    return failure();
  return Value(*made);
}

//===- Random numbers -------------------------------------------------------------------------===//

Result emitDropout(Emission &call) {
  mlir::Value x = call.tensor("x");
  FailureOr<double> rate = call.real("rate", 0, 1);
  if (failed(rate))
    return failure();
  Graph &graph = call.graph;
  if (!graph.isTraining() || *rate == 0)
    return Value(x);
  FailureOr<RandomDraw> draw = call.draw("x", shapeOf(x));
  if (failed(draw))
    return failure();
  auto dropout = nn::DropoutOp::create(graph.builder, graph.loc, x, draw->seed, draw->step,
                                       draw->firstRow, graph.builder.getF64FloatAttr(*rate),
                                       graph.builder.getI64IntegerAttr(draw->stream));
  return Value(mlir::Value(dropout));
}

/// Numbers of a distribution, a tensor of the call's shape.
template <typename Op> static FailureOr<mlir::Value> drawNumbers(const Emission &call) {
  FailureOr<SmallVector<int64_t>> shape = shapeArgument(call);
  if (failed(shape))
    return failure();
  FailureOr<RandomDraw> draw = call.draw("shape", *shape);
  if (failed(draw))
    return failure();
  Graph &graph = call.graph;
  return mlir::Value(Op::create(graph.builder, graph.loc, graph.f32(*shape), draw->seed, draw->step,
                                draw->firstRow, graph.builder.getI64IntegerAttr(draw->stream)));
}

/// offset + factor * x.
static Value scaled(Graph &graph, mlir::Value x, double factor, double offset) {
  mlir::RankedTensorType type = nn::tensorType(x);
  if (factor != 1)
    x = nn::MulOp::create(graph.builder, graph.loc, x, graph.constant(type, factor));
  if (offset != 0)
    x = nn::AddOp::create(graph.builder, graph.loc, x, graph.constant(type, offset));
  return Value(x);
}

constexpr double mostNumber = 1e30;

Result emitUniform(Emission &call) {
  FailureOr<double> low = call.real("low", -mostNumber, mostNumber);
  FailureOr<double> high = call.real("high", -mostNumber, mostNumber);
  if (failed(low) || failed(high))
    return failure();
  if (*low > *high)
    return call.error("high", "uniform expects low <= high, got " + toText(call["low"]) + " and " +
                                  toText(call["high"]));
  FailureOr<mlir::Value> numbers = drawNumbers<nn::UniformOp>(call);
  if (failed(numbers))
    return failure();
  return scaled(call.graph, *numbers, *high - *low, *low);
}

Result emitNormal(Emission &call) {
  FailureOr<double> mean = call.real("mean", -mostNumber, mostNumber);
  FailureOr<double> deviation = call.real("std", 0, mostNumber);
  if (failed(mean) || failed(deviation))
    return failure();
  FailureOr<mlir::Value> numbers = drawNumbers<nn::NormalOp>(call);
  if (failed(numbers))
    return failure();
  return scaled(call.graph, *numbers, *deviation, *mean);
}

Result emitBernoulli(Emission &call) {
  double p = call.real("p");
  if (!(p >= 0 && p <= 1))
    return call.error("p", "argument 'p' of bernoulli expects a number from 0 to 1, got " +
                               toText(call["p"]));
  FailureOr<mlir::Value> numbers = drawNumbers<nn::UniformOp>(call);
  if (failed(numbers))
    return failure();
  Graph &graph = call.graph;
  mlir::Value bound = graph.constant(nn::tensorType(*numbers), p);
  return Value(graph.compare(nn::Comparison::LT, *numbers, bound));
}

} // namespace dlc::fe
