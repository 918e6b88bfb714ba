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

/// Sums over the given axes, which stay as axes of size 1 with `keep`.
static mlir::Value reduce(const Emission &call, mlir::Value x, ArrayRef<int64_t> axes) {
  mlir::Value sum = call.graph.sum(x, axes);
  if (!call.flag("keep"))
    return sum;
  SmallVector<int64_t> shape(shapeOf(x));
  for (int64_t axis : axes)
    shape[axis] = 1;
  return call.graph.reshape(sum, shape);
}

Result emitSum(Emission &call) {
  mlir::Value x = call.tensor("x");
  size_t rank = shapeOf(x).size();
  if (call["axes"].isAbsent())
    return Value(reduce(call, x, to_vector(seq<int64_t>(0, rank))));
  FailureOr<SmallVector<int64_t>> axes = call.axes("axes", rank);
  if (failed(axes))
    return failure();
  return Value(reduce(call, x, *axes));
}

Result emitMean(Emission &call) {
  mlir::Value x = call.tensor("x");
  if (call["axes"].isAbsent() && !call.flag("keep")) {
    Mean mean;
    mean.terms.push_back({x, {}, 1});
    mean.origin = "mean";
    return Value(std::move(mean));
  }
  size_t rank = shapeOf(x).size();
  FailureOr<SmallVector<int64_t>> axes = to_vector(seq<int64_t>(0, rank));
  if (!call["axes"].isAbsent())
    axes = call.axes("axes", rank);
  if (failed(axes))
    return failure();
  double count = 1;
  for (int64_t axis : *axes)
    count *= shapeOf(x)[axis];
  mlir::Value sum = reduce(call, x, *axes);
  mlir::Value share = call.graph.constant(nn::tensorType(sum), 1 / count);
  return Value(mlir::Value(nn::MulOp::create(call.graph.builder, call.loc(), sum, share)));
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
