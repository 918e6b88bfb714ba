// Operators that move or reduce elements, and those on lists.
#include "frontend/operators/Emission.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

/// The operands of concat agree in all axes but one.
static LogicalResult checkConcat(const Emission &call, ArrayRef<mlir::Value> inputs, size_t axis) {
  ArrayRef<int64_t> first = shapeOf(inputs.front());
  for (mlir::Value input : inputs) {
    ArrayRef<int64_t> shape = shapeOf(input);
    bool fits = shape.size() == first.size();
    for (size_t i = 0; fits && i < shape.size(); ++i)
      fits = i == axis || shape[i] == first[i];
    if (!fits)
      return call.error("inputs", "concat along axis " + Twine(axis) +
                                      " expects tensors equal in all other axes, got " +
                                      typeText(inputs.front().getType()) + " and " +
                                      typeText(input.getType()));
  }
  return success();
}

Result emitConcat(Emission &call) {
  const Value &given = call["inputs"];
  SmallVector<mlir::Value> inputs;
  for (const Value &value : given.isList() ? given.asList() : ArrayRef<Value>(given))
    inputs.push_back(call.graph.toFloat(value));
  if (inputs.empty())
    return call.error("inputs", "concat needs at least one tensor");
  FailureOr<SmallVector<int64_t>> axis = call.axes("axis", shapeOf(inputs.front()).size());
  if (failed(axis) || failed(checkConcat(call, inputs, axis->front())))
    return failure();
  SmallVector<int64_t> shape(shapeOf(inputs.front()));
  for (mlir::Value input : drop_begin(inputs)) {
    shape[axis->front()] += shapeOf(input)[axis->front()];
    if (failed(call.checkShape(shape)))
      return failure();
  }
  if (inputs.size() == 1)
    return Value(inputs.front());
  return Value(
      mlir::Value(nn::ConcatOp::create(call.graph.builder, call.loc(), inputs, axis->front())));
}

Result emitFlatten(Emission &call) {
  mlir::Value x = call.tensor("x");
  ArrayRef<int64_t> shape = shapeOf(x);
  if (shape.empty())
    return call.error("x", "flatten expects a tensor [N, ...], got " + describe(call["x"]));
  return Value(call.graph.reshape(x, {shape.front(), elementCount(shape.drop_front())}));
}

Result emitReshape(Emission &call) {
  mlir::Value x = call.tensor("x");
  int64_t elements = elementCount(shapeOf(x));
  SmallVector<int64_t> shape;
  int64_t *open = nullptr;
  for (const Value &item : call["shape"].asList())
    shape.push_back(item.asInt());
  int64_t known = 1;
  for (int64_t &extent : shape) {
    bool isOpen = extent == -1 && !open;
    if (isOpen)
      open = &extent;
    else if (extent < 1 || __builtin_mul_overflow(known, extent, &known))
      return call.error("shape", "reshape expects positive extents (one may be -1), got " +
                                     toText(call["shape"]));
  }
  if (open)
    *open = elements % known == 0 ? elements / known : 0;
  if (shape.size() > nn::maxRank || (open ? *open == 0 : known != elements))
    return call.error("shape", "reshape keeps the number of elements and makes at most 5 axes: " +
                                   typeText(x.getType()) + " has " + Twine(elements) +
                                   ", which does not fit " + toText(call["shape"]));
  return Value(call.graph.reshape(x, shape));
}

//===- Reductions -----------------------------------------------------------------------------===//

/// The argument `axes` of a reduction of `x`, all by default.
static FailureOr<SmallVector<int64_t>> reducedAxes(const Emission &call, mlir::Value x) {
  size_t rank = shapeOf(x).size();
  if (call["axes"].isAbsent())
    return to_vector(seq<int64_t>(0, rank));
  return call.axes("axes", rank);
}

/// Shape of `x` with extent 1 along the axes.
static SmallVector<int64_t> keptShape(mlir::Value x, ArrayRef<int64_t> axes) {
  SmallVector<int64_t> shape(shapeOf(x));
  for (int64_t axis : axes)
    shape[axis] = 1;
  return shape;
}

/// A result that lacks the axes, which become axes of size 1 with `keep`.
static Value reduced(const Emission &call, mlir::Value result, mlir::Value x,
                     ArrayRef<int64_t> axes) {
  return Value(call.flag("keep") ? call.graph.reshape(result, keptShape(x, axes)) : result);
}

static mlir::Value scaled(Graph &graph, mlir::Value x, double factor) {
  mlir::Value constant = graph.constant(nn::tensorType(x), factor);
  return nn::MulOp::create(graph.builder, graph.loc, x, constant);
}

static int64_t elementsAlong(mlir::Value x, ArrayRef<int64_t> axes) {
  int64_t count = 1;
  for (int64_t axis : axes)
    count *= shapeOf(x)[axis];
  return count;
}

Result emitSum(Emission &call) {
  mlir::Value x = call.tensor("x");
  FailureOr<SmallVector<int64_t>> axes = reducedAxes(call, x);
  if (failed(axes))
    return failure();
  return reduced(call, call.graph.sum(x, *axes), x, *axes);
}

Result emitMean(Emission &call) {
  mlir::Value x = call.tensor("x");
  if (call["axes"].isAbsent() && !call.flag("keep")) {
    Mean mean;
    mean.terms.push_back({x, {}, 1});
    mean.origin = "mean";
    return Value(std::move(mean));
  }
  FailureOr<SmallVector<int64_t>> axes = reducedAxes(call, x);
  if (failed(axes))
    return failure();
  mlir::Value sum = call.graph.sum(x, *axes);
  auto count = static_cast<double>(elementsAlong(x, *axes));
  return reduced(call, scaled(call.graph, sum, 1 / count), x, *axes);
}

static mlir::Value largest(Graph &graph, mlir::Value x, ArrayRef<int64_t> axes) {
  return axes.empty() ? x : mlir::Value(nn::ReduceMaxOp::create(graph.builder, graph.loc, x, axes));
}

Result emitAmax(Emission &call) {
  mlir::Value x = call.tensor("x");
  FailureOr<SmallVector<int64_t>> axes = reducedAxes(call, x);
  if (failed(axes))
    return failure();
  return reduced(call, largest(call.graph, x, *axes), x, *axes);
}

/// In two passes, so that nothing cancels where the mean is large. The mean is a constant to the
/// gradient: its own share is the sum of the deviations, which is 0.
Result emitVar(Emission &call) {
  Graph &graph = call.graph;
  mlir::Value x = call.tensor("x");
  FailureOr<SmallVector<int64_t>> axes = reducedAxes(call, x);
  FailureOr<int64_t> correction = call.integer("correction", 0, nn::maxElements);
  if (failed(axes) || failed(correction))
    return failure();
  int64_t count = elementsAlong(x, *axes);
  if (count <= *correction)
    return call.error("x", "var of " + Twine(count) + (count == 1 ? " element" : " elements") +
                               " with correction = " + Twine(*correction) +
                               " divides by what is not positive; correction = 0 divides by their "
                               "number");
  mlir::Value mean = scaled(graph, graph.sum(x, *axes), 1 / static_cast<double>(count));
  mean = graph.reshape(graph.stopGradient(mean), keptShape(x, *axes));
  mlir::Value deviation = nn::SubOp::create(
      graph.builder, graph.loc, x, graph.broadcast(mean, SmallVector<int64_t>(shapeOf(x))));
  mlir::Value square = nn::MulOp::create(graph.builder, graph.loc, deviation, deviation);
  mlir::Value var =
      scaled(graph, graph.sum(square, *axes), 1 / static_cast<double>(count - *correction));
  return reduced(call, var, x, *axes);
}

/// The smallest index of an element that equals the maximum, or is no number: then the maximum is
/// none, either, and nothing equals it. Indices are f32, which hold these exactly.
Result emitArgmax(Emission &call) {
  Graph &graph = call.graph;
  mlir::OpBuilder &builder = graph.builder;
  mlir::Value x = call.tensor("x");
  SmallVector<int64_t> shape(shapeOf(x));
  FailureOr<SmallVector<int64_t>> axis = call.axes("axis", shape.size());
  if (failed(axis))
    return failure();
  constexpr int64_t limit = 1 << 24;
  int64_t extent = shape[axis->front()];
  if (extent > limit)
    return call.error("axis",
                      "argmax expects at most 2^24 elements along its axis, got " + Twine(extent));
  mlir::Value maximum = graph.reshape(largest(graph, x, *axis), keptShape(x, *axis));
  mlir::Value isLargest = graph.compare(nn::Comparison::EQ, x, graph.broadcast(maximum, shape));
  mlir::Value isNaN = graph.compare(nn::Comparison::NE, x, x);
  mlir::Value wins = nn::OrOp::create(builder, graph.loc, isLargest, isNaN);
  mlir::Value index = nn::IotaOp::create(builder, graph.loc, graph.i32(shape), axis->front());
  mlir::Value candidate =
      nn::SelectOp::create(builder, graph.loc, wins,
                           nn::NegOp::create(builder, graph.loc, graph.toFloat(index)).getResult(),
                           graph.constant(graph.f32(shape), static_cast<double>(-extent)));
  mlir::Value first = nn::NegOp::create(builder, graph.loc, largest(graph, candidate, *axis));
  return Value(graph.cast(first, builder.getI32Type()));
}

//===- Lists ----------------------------------------------------------------------------------===//

Result emitLen(Emission &call) {
  const Value &x = call["x"];
  if (x.isString())
    return Value(static_cast<int64_t>(x.asString().size()));
  if (x.isList())
    return Value(static_cast<int64_t>(x.asList().size()));
  return call.error("x", "len expects a list or a string, got " + describe(x));
}

Result emitEnumerate(Emission &call) {
  const Value &x = call["list"];
  if (!x.isList())
    return call.error("list", "enumerate expects a list, got " + describe(x));
  std::vector<Value> pairs;
  for (auto [index, item] : llvm::enumerate(x.asList()))
    pairs.push_back(Value::list({Value(static_cast<int64_t>(index)), item}));
  Value list = Value::list(std::move(pairs));
  if (list.isAbsent())
    return call.error("list", "the list is too long or too deep");
  return list;
}

Result emitReversed(Emission &call) {
  const Value &x = call["list"];
  if (!x.isList())
    return call.error("list", "reversed expects a list or a range, got " + describe(x));
  return Value::list(std::vector<Value>(x.asList().rbegin(), x.asList().rend()));
}

} // namespace dlc::fe
