// Semantics of the elementwise ops.

#include "runtime/core/Philox.h"
#include "test/reference/Evaluator.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;
using namespace dlc::reference;

template <typename Function> static std::vector<Tensor> map(Operands x, Function function) {
  Tensor y(x[0]->shape);
  for (int64_t i = 0; i < y.size(); ++i)
    if constexpr (std::is_invocable_v<Function, double>)
      y.data[i] = function(x[0]->data[i]);
    else if constexpr (std::is_invocable_v<Function, double, double>)
      y.data[i] = function(x[0]->data[i], x[1]->data[i]);
    else
      y.data[i] = function(x[0]->data[i], x[1]->data[i], x[2]->data[i]);
  return {std::move(y)};
}

static bool holds(Comparison predicate, double a, double b) {
  switch (predicate) {
  case Comparison::LT:
    return a < b;
  case Comparison::LE:
    return a <= b;
  case Comparison::GT:
    return a > b;
  case Comparison::GE:
    return a >= b;
  case Comparison::EQ:
    return a == b;
  case Comparison::NE:
    return a != b;
  }
}

/// The uniform numbers of an op's elements, in [0, 1) with 24 bits.
static Tensor uniform(RandomOpInterface op, Operands operands) {
  Operands scalars = operands.take_back(3);
  auto seed = static_cast<uint64_t>(scalars[0]->scalar());
  auto step = static_cast<uint32_t>(scalars[1]->scalar());
  auto stream = static_cast<uint32_t>(op.getStream());
  Tensor y = zerosFor(op->getResult(0));
  int64_t before = static_cast<int64_t>(scalars[2]->scalar()) * (y.size() / y.shape[0]);
  for (int64_t i = 0; i < y.size(); ++i)
    y.data[i] = rt::uniform01(rt::philoxBits(seed, stream, step, before + i));
  return y;
}

static std::vector<Tensor> dropout(DropoutOp op, Operands operands) {
  const Tensor &x = *operands[0];
  double rate = op.getRate().convertToDouble();
  Tensor y = uniform(op, operands);
  for (int64_t i = 0; i < y.size(); ++i)
    y.data[i] = y.data[i] >= rate ? x.data[i] / (1 - rate) : 0;
  return {std::move(y)};
}

/// The z with Phi(z) = p, found by halving an interval.
static double normalQuantile(double p) {
  double low = -8, high = 8;
  for (int i = 0; i < 60; ++i) {
    double z = (low + high) / 2;
    (0.5 * std::erfc(-z / std::numbers::sqrt2) < p ? low : high) = z;
  }
  return low;
}

static std::vector<Tensor> normal(NormalOp op, Operands operands) {
  Tensor y = uniform(op, operands);
  for (double &value : y.data)
    value = normalQuantile(value + 0x1.0p-25);
  return {std::move(y)};
}

Results reference::evaluateElementwise(Operation *op, Operands x) {
  using D = double;
  return TypeSwitch<Operation *, Results>(op)
      .Case([&](NegOp) { return map(x, [](D x) { return -x; }); })
      .Case([&](AbsOp) { return map(x, [](D x) { return std::fabs(x); }); })
      .Case([&](ExpOp) { return map(x, [](D x) { return std::exp(x); }); })
      .Case([&](LogOp) { return map(x, [](D x) { return std::log(x); }); })
      .Case([&](SqrtOp) { return map(x, [](D x) { return std::sqrt(x); }); })
      .Case([&](RsqrtOp) { return map(x, [](D x) { return 1 / std::sqrt(x); }); })
      .Case([&](TanhOp) { return map(x, [](D x) { return std::tanh(x); }); })
      .Case([&](ReluOp) { return map(x, [](D x) { return x < 0 ? 0 : x; }); })
      .Case([&](SigmoidOp) { return map(x, [](D x) { return 1 / (1 + std::exp(-x)); }); })
      .Case([&](SoftplusOp) {
        return map(x, [](D x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); });
      })
      .Case([&](ErfOp) { return map(x, [](D x) { return std::erf(x); }); })
      .Case([&](StopGradientOp) { return map(x, [](D x) { return x; }); })
      .Case([&](AddOp) { return map(x, [](D a, D b) { return a + b; }); })
      .Case([&](SubOp) { return map(x, [](D a, D b) { return a - b; }); })
      .Case([&](MulOp) { return map(x, [](D a, D b) { return a * b; }); })
      .Case([&](DivOp) { return map(x, [](D a, D b) { return a / b; }); })
      .Case([&](MaxOp) { return map(x, [](D a, D b) { return a >= b || a != a ? a : b; }); })
      .Case([&](MinOp) { return map(x, [](D a, D b) { return a <= b || a != a ? a : b; }); })
      .Case([&](PowOp) { return map(x, [](D a, D b) { return std::pow(a, b); }); })
      .Case([&](CompareOp compare) {
        return map(x, [&](D a, D b) -> D { return holds(compare.getPredicate(), a, b); });
      })
      .Case([&](AndOp) { return map(x, [](D a, D b) -> D { return a && b; }); })
      .Case([&](OrOp) { return map(x, [](D a, D b) -> D { return a || b; }); })
      .Case([&](NotOp) { return map(x, [](D x) -> D { return !x; }); })
      .Case([&](SelectOp) { return map(x, [](D c, D a, D b) { return c ? a : b; }); })
      .Case([&](CastOp cast) {
        bool toInteger = isa<IntegerType>(tensorType(cast.getY()).getElementType());
        return map(x, [&](D x) { return toInteger ? std::trunc(x) : x; });
      })
      .Case([&](DropoutOp dropout) { return ::dropout(dropout, x); })
      .Case([&](UniformOp op) { return std::vector<Tensor>{uniform(op, x)}; })
      .Case([&](NormalOp op) { return normal(op, x); })
      .Default(Results());
}
