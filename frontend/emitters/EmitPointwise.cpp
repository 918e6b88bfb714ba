// Elementwise functions, on numbers at compile time and on tensors, and softmax. Where a function
// has no derivative, its gradient is that of torch.
#include "frontend/operators/Arithmetic.h"
#include "frontend/operators/Emission.h"
#include "runtime/artifact/Formula.h"

#include <cmath>

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

template <typename Op, typename... Operands>
static mlir::Value make(Graph &graph, Operands... operands) {
  return Op::create(graph.builder, graph.loc, operands...);
}

/// A constant of the shape of `like`.
static mlir::Value constant(Graph &graph, mlir::Value like, double value) {
  return graph.constant(nn::tensorType(like), value);
}

static mlir::Value scaled(Graph &graph, mlir::Value x, double factor) {
  return make<nn::MulOp>(graph, x, constant(graph, x, factor));
}

/// What `build` makes of a tensor, or the function of a number.
static Result emitFunction(Emission &call, function_ref<mlir::Value(mlir::Value)> build,
                           function_ref<double(double)> function) {
  const Value &x = call["x"];
  if (x.isMean() && rt::Formula::isFunction({call.name().data(), call.name().size()})) {
    if (std::optional<Mean> function = applyFormula(call.name(), x.asMean()))
      return Value(std::move(*function));
    return call.error("x", "a function of too many means");
  }
  if (x.isGraph())
    return Value(build(call.tensor("x")));
  double result = function(x.asDouble());
  if (!std::isfinite(result))
    return call.error("x", call.name() + " of " + toText(x) + " is no finite number");
  return Value(result);
}

template <typename Op> static Result emitUnary(Emission &call, double (*function)(double)) {
  return emitFunction(call, [&](mlir::Value x) { return make<Op>(call.graph, x); }, function);
}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Result emitRelu(Emission &call) {
  return emitUnary<nn::ReluOp>(call, [](double x) { return x > 0 ? x : 0; });
}
Result emitSigmoid(Emission &call) { return emitUnary<nn::SigmoidOp>(call, sigmoid); }
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

Result emitSoftplus(Emission &call) {
  return emitUnary<nn::SoftplusOp>(
      call, [](double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); });
}

Result emitLog10(Emission &call) {
  return emitFunction(
      call,
      [&](mlir::Value x) {
        return scaled(call.graph, make<nn::LogOp>(call.graph, x), 1 / std::log(10.0));
      },
      [](double x) { return std::log10(x); });
}

//===- Activations ----------------------------------------------------------------------------===//

Result emitSilu(Emission &call) {
  return emitFunction(
      call,
      [&](mlir::Value x) {
        return make<nn::MulOp>(call.graph, x, make<nn::SigmoidOp>(call.graph, x));
      },
      [](double x) { return x * sigmoid(x); });
}

/// x / 2 (1 + erf(x / sqrt(2))).
Result emitGelu(Emission &call) {
  return emitFunction(
      call,
      [&](mlir::Value x) {
        Graph &graph = call.graph;
        mlir::Value erf = make<nn::ErfOp>(graph, scaled(graph, x, std::sqrt(0.5)));
        mlir::Value sum = make<nn::AddOp>(graph, erf, constant(graph, x, 1));
        return make<nn::MulOp>(graph, scaled(graph, x, 0.5), sum);
      },
      [](double x) { return x / 2 * std::erfc(-x * std::sqrt(0.5)); });
}

static mlir::Value isPositive(Graph &graph, mlir::Value x) {
  return graph.compare(nn::Comparison::GT, x, constant(graph, x, 0));
}

Result emitLeakyRelu(Emission &call) {
  double slope = call.real("slope");
  if (!fitsF32(slope))
    return call.error("slope", toText(call["slope"]) + " is too large");
  return emitFunction(
      call,
      [&](mlir::Value x) {
        return make<nn::SelectOp>(call.graph, isPositive(call.graph, x), x,
                                  scaled(call.graph, x, slope));
      },
      [&](double x) { return x > 0 ? x : slope * x; });
}

/// The exponential is of a number that is not positive: its gradient is finite where x is chosen,
/// too, and 0 times infinity is no number.
Result emitElu(Emission &call) {
  return emitFunction(
      call,
      [&](mlir::Value x) {
        Graph &graph = call.graph;
        mlir::Value power =
            make<nn::ExpOp>(graph, make<nn::MinOp>(graph, x, constant(graph, x, 0)));
        mlir::Value below = make<nn::SubOp>(graph, power, constant(graph, x, 1));
        return make<nn::SelectOp>(graph, isPositive(graph, x), x, below);
      },
      [](double x) { return x > 0 ? x : std::expm1(x); });
}

/// x min(6, max(x + 3, 0)) / 6. Of two equal operands the first takes the gradient, so that it is 1
/// at 3 and 0 at -3.
Result emitHardswish(Emission &call) {
  return emitFunction(
      call,
      [&](mlir::Value x) {
        Graph &graph = call.graph;
        mlir::Value above =
            make<nn::ReluOp>(graph, make<nn::AddOp>(graph, x, constant(graph, x, 3)));
        mlir::Value share = make<nn::MinOp>(graph, constant(graph, x, 6), above);
        return scaled(graph, make<nn::MulOp>(graph, x, share), 1.0 / 6);
      },
      [](double x) { return x * std::fmin(6, std::fmax(x + 3, 0)) / 6; });
}

//===- Softmax --------------------------------------------------------------------------------===//

namespace {
/// The parts of softmax over axis 1. Subtracting the maximum keeps the exponentials from
/// overflowing. It is a constant to the gradient: the result does not depend on it.
struct SoftmaxParts {
  mlir::Value shifted; // x - max
  mlir::Value powers;  // e^shifted
  mlir::Value total;   // of the powers, one per row
};
} // namespace

/// Axes 0, 2, 3... of a tensor's `shape`, of which there is a value each, and 1, along which it
/// repeats.
static mlir::Value alongClasses(Graph &graph, mlir::Value perRow, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> kept{0};
  append_range(kept, seq<int64_t>(2, shape.size()));
  return graph.spread(perRow, kept, shape);
}

static FailureOr<SoftmaxParts> softmaxParts(Emission &call) {
  Graph &graph = call.graph;
  mlir::Value x = call.tensor("x");
  if (shapeOf(x).size() < 2)
    return call.error("x",
                      call.name() + " expects a tensor [N, C, ...], got " + describe(call["x"]));
  mlir::Value largest =
      graph.stopGradient(make<nn::ReduceMaxOp>(graph, x, SmallVector<int64_t>{1}));
  SoftmaxParts parts;
  parts.shifted = make<nn::SubOp>(graph, x, alongClasses(graph, largest, shapeOf(x)));
  parts.powers = make<nn::ExpOp>(graph, parts.shifted);
  parts.total = graph.sum(parts.powers, {1});
  return parts;
}

Result emitSoftmax(Emission &call) {
  FailureOr<SoftmaxParts> parts = softmaxParts(call);
  if (failed(parts))
    return failure();
  mlir::Value total = alongClasses(call.graph, parts->total, shapeOf(parts->powers));
  return Value(make<nn::DivOp>(call.graph, parts->powers, total));
}

Result emitLogSoftmax(Emission &call) {
  FailureOr<SoftmaxParts> parts = softmaxParts(call);
  if (failed(parts))
    return failure();
  mlir::Value total = make<nn::LogOp>(call.graph, parts->total);
  return Value(make<nn::SubOp>(call.graph, parts->shifted,
                               alongClasses(call.graph, total, shapeOf(parts->shifted))));
}

//===- Of several operands --------------------------------------------------------------------===//

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
    FailureOr<SmallVector<int64_t>> shape = call.commonShape("values", a.getType(), b.getType());
    if (failed(shape))
      return failure();
    best = Value(mlir::Value(Op::create(graph.builder, graph.loc, graph.broadcast(a, *shape),
                                        graph.broadcast(b, *shape))));
  }
  return best;
}

Result emitMax(Emission &call) { return emitExtremum<nn::MaxOp>(call, true); }
Result emitMin(Emission &call) { return emitExtremum<nn::MinOp>(call, false); }

/// Of ints the result is an int.
Result emitClamp(Emission &call) {
  const Value &x = call["x"], &low = call["low"], &high = call["high"];
  for (StringRef bound : {"low", "high"})
    if (!fitsF32(call.real(bound)))
      return call.error(bound, toText(call[bound]) + " is too large");
  if (low.asDouble() > high.asDouble())
    return call.error("high",
                      "clamp expects low <= high, got " + toText(low) + " and " + toText(high));
  if (x.isNumber())
    return x.asDouble() < low.asDouble() ? low : x.asDouble() > high.asDouble() ? high : x;
  Graph &graph = call.graph;
  mlir::Value value = call.tensor("x");
  value = make<nn::MaxOp>(graph, value, constant(graph, value, low.asDouble()));
  return Value(make<nn::MinOp>(graph, value, constant(graph, value, high.asDouble())));
}

/// The element type of what `where` chooses: that of both, i32 beside an int, else f32.
static mlir::Type commonElement(Graph &graph, const Value &a, const Value &b) {
  mlir::Type single = graph.builder.getF32Type(), integer = graph.builder.getI32Type();
  auto elementOf = [&](const Value &value) {
    return value.isTensor() ? nn::tensorType(value.asTensor()).getElementType() : mlir::Type();
  };
  auto isInteger = [&](const Value &value) {
    return elementOf(value) == integer || (value.isInt() && isInt<32>(value.asInt()));
  };
  if (elementOf(a) && elementOf(a) == elementOf(b))
    return elementOf(a);
  bool isTensor = elementOf(a) || elementOf(b);
  return isTensor && isInteger(a) && isInteger(b) ? integer : single;
}

Result emitWhere(Emission &call) {
  Graph &graph = call.graph;
  const Value &condition = call["condition"], &a = call["a"], &b = call["b"];
  bool isMask =
      condition.isTensor() && nn::tensorType(condition.asTensor()).getElementType().isInteger(1);
  if (!isMask && !condition.isBool())
    return call.error("condition",
                      "where expects a comparison such as 'x > 0.0', got " + describe(condition));
  if (condition.isBool() && a.isNumber() && b.isNumber())
    return condition.asBool() ? a : b;
  mlir::Type element = commonElement(graph, a, b);
  auto operand = [&](const Value &value) -> mlir::Value {
    if (value.isNumber())
      return graph.constant(mlir::RankedTensorType::get({}, element), value.asDouble());
    return graph.cast(value.isTensor() ? value.asTensor() : graph.toFloat(value), element);
  };
  for (StringRef argument : {"a", "b"})
    if (call[argument].isNumber() && !fitsF32(call.real(argument)))
      return call.error(argument, toText(call[argument]) + " is too large for a tensor of f32");
  mlir::Value chosen = operand(a), other = operand(b);
  FailureOr<SmallVector<int64_t>> shape = call.commonShape("a", chosen.getType(), other.getType());
  if (succeeded(shape) && isMask)
    shape = call.commonShape("condition", condition.asTensor().getType(), graph.f32(*shape));
  if (failed(shape))
    return failure();
  chosen = graph.broadcast(chosen, *shape);
  other = graph.broadcast(other, *shape);
  if (!isMask)
    return Value(condition.asBool() ? chosen : other);
  return Value(
      make<nn::SelectOp>(graph, graph.broadcast(condition.asTensor(), *shape), chosen, other));
}

Result emitStopGradient(Emission &call) {
  const Value &x = call["x"];
  if (!x.isGraph())
    return x;
  mlir::Value value = x.isTensor() ? x.asTensor() : call.tensor("x");
  bool isFloat = isa<mlir::FloatType>(nn::tensorType(value).getElementType());
  return Value(isFloat ? call.graph.stopGradient(value) : value);
}

} // namespace dlc::fe
