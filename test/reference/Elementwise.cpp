// Semantics of the elementwise ops.

#include "runtime/core/Philox.h"
#include "test/reference/Evaluator.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

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

static std::vector<Tensor> dropout(DropoutOp op, Operands operands) {
  const Tensor &x = *operands[0];
  auto seed = static_cast<uint64_t>(operands[1]->scalar());
  auto step = static_cast<uint32_t>(operands[2]->scalar());
  auto stream = static_cast<uint32_t>(op.getStream());
  double rate = op.getRate().convertToDouble();
  int64_t before = static_cast<int64_t>(operands[3]->scalar()) * (x.size() / x.shape[0]);
  Tensor y(x.shape);
  for (int64_t i = 0; i < y.size(); ++i)
    if (rt::uniform01(rt::philoxBits(seed, stream, step, before + i)) >= rate)
      y.data[i] = x.data[i] / (1 - rate);
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
      .Default(Results());
}
