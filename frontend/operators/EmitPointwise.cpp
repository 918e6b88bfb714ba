// Elementwise functions, on numbers at compile time and on tensors, and softmax.
#include "frontend/operators/Arithmetic.h"
#include "frontend/operators/Emission.h"

#include <cmath>

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

template <typename Op> static Result emitUnary(Emission &call, double (*function)(double)) {
  const Value &x = call["x"];
  if (x.isGraph())
    return Value(mlir::Value(Op::create(call.graph.builder, call.loc(), call.tensor("x"))));
  double result = function(x.asDouble());
  if (!std::isfinite(result))
    return call.error("x", call.name() + " of " + toText(x) + " is no finite number");
  return Value(result);
}

Result emitRelu(Emission &call) {
  return emitUnary<nn::ReluOp>(call, [](double x) { return x > 0 ? x : 0; });
}
Result emitSigmoid(Emission &call) {
  return emitUnary<nn::SigmoidOp>(call, [](double x) { return 1 / (1 + std::exp(-x)); });
}
Result emitExp(Emission &call) { return emitUnary<nn::ExpOp>(call, std::exp); }
Result emitLog(Emission &call) { return emitUnary<nn::LogOp>(call, std::log); }
Result emitSqrt(Emission &call) { return emitUnary<nn::SqrtOp>(call, std::sqrt); }
Result emitTanh(Emission &call) { return emitUnary<nn::TanhOp>(call, std::tanh); }

Result emitAbs(Emission &call) {
  const Value &x = call["x"];
  if (x.isInt() && x.asInt() != INT64_MIN)
    return Value(std::abs(x.asInt()));
  return emitUnary<nn::AbsOp>(call, std::fabs);
}

/// exp(x - max) / sum over axis 1. The maximum only guards against overflow: the quotient does not
/// depend on it, so it needs no gradient.
Result emitSoftmax(Emission &call) {
  mlir::Value x = call.tensor("x");
  SmallVector<int64_t> shape(shapeOf(x));
  if (shape.size() < 2)
    return call.error("x", "softmax expects a tensor [N, C, ...], got " + describe(call["x"]));
  Graph &graph = call.graph;
  SmallVector<int64_t> kept{0};
  append_range(kept, seq<int64_t>(2, shape.size()));
  mlir::Value largest =
      nn::ReduceMaxOp::create(graph.builder, graph.loc, x, SmallVector<int64_t>{1});
  mlir::Value shift = graph.spread(largest, kept, shape);
  mlir::Value powers = nn::ExpOp::create(graph.builder, graph.loc,
                                         nn::SubOp::create(graph.builder, graph.loc, x, shift));
  mlir::Value total = graph.spread(graph.sum(powers, {1}), kept, shape);
  return Value(mlir::Value(nn::DivOp::create(graph.builder, graph.loc, powers, total)));
}

/// Folds all arguments by max or min; of ints the result is an int.
template <typename Op> static Result emitExtremum(Emission &call, bool largest) {
  const Value &given = call["values"];
  ArrayRef<Value> values = given.isList() ? given.asList() : ArrayRef<Value>(given);
  if (values.empty())
    return call.error("", call.name() + " needs at least one value");
  Graph &graph = call.graph;
  Value best = values.front();
  for (const Value &value : values) {
    if (!value.isNumber() && !value.isTensor())
      return call.error("values",
                        call.name() + " expects numbers and tensors, got " + describe(value));
    if (value.isNumber() && !fitsF32(value.asDouble()))
      return call.error("values", toText(value) + " is too large");
    if (&value == &values.front())
      continue;
    if (best.isNumber() && value.isNumber()) {
      bool better =
          largest ? value.asDouble() > best.asDouble() : value.asDouble() < best.asDouble();
      best = better ? value : best;
      continue;
    }
    mlir::Value a = graph.toFloat(best);
    mlir::Value b = graph.toFloat(value);
    FailureOr<SmallVector<int64_t>> shape = call.commonShape("values", a, b);
    if (failed(shape))
      return failure();
    best = Value(mlir::Value(Op::create(graph.builder, graph.loc, graph.broadcast(a, *shape),
                                        graph.broadcast(b, *shape))));
  }
  return best;
}

Result emitMax(Emission &call) { return emitExtremum<nn::MaxOp>(call, true); }
Result emitMin(Emission &call) { return emitExtremum<nn::MinOp>(call, false); }

} // namespace dlc::fe
