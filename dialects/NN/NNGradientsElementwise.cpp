// Gradient rules of the elementwise ops, written as one table of formulas.
//
// Each formula is in dy (gradient of the result), y (the result) and the operands; Term turns it
// into nn ops at the op's own location.

#include "dialects/NN/NN.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <cmath>

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace {
/// A value with arithmetic; all terms of a formula have one type.
struct Term {
  ImplicitLocOpBuilder &g;
  Value value;

  Term like(double constant) const {
    return {g, splat(g, g.getLoc(), logicalType(tensorType(value)), constant)};
  }
  operator Value() const { return value; }
};

Term operator*(Term a, Term b) { return {a.g, MulOp::create(a.g, a.value, b.value)}; }
Term operator*(Term a, double b) { return a * a.like(b); }
Term operator/(Term a, Term b) { return {a.g, DivOp::create(a.g, a.value, b.value)}; }
Term operator-(Term a, Term b) { return {a.g, SubOp::create(a.g, a.value, b.value)}; }
Term operator-(double a, Term b) { return b.like(a) - b; }
Term operator-(Term a, double b) { return a - a.like(b); }
Term operator-(Term a) { return {a.g, NegOp::create(a.g, a.value)}; }

Value holds(Term a, Comparison predicate, Term b) {
  return CompareOp::create(a.g, predicate, a.value, b.value);
}
Value holds(Term a, Comparison predicate, double b) { return holds(a, predicate, a.like(b)); }
Term select(Value condition, Term a, Term b) {
  return {a.g, SelectOp::create(a.g, condition, a.value, b.value)};
}
Term select(Value condition, Term a, double b) { return select(condition, a, a.like(b)); }
Term select(Value condition, double a, Term b) { return select(condition, b.like(a), b); }
Term sigmoid(Term x) { return {x.g, SigmoidOp::create(x.g, x.value)}; }
Term exp(Term x) { return {x.g, ExpOp::create(x.g, x.value)}; }
Term pow(Term a, Term b) { return {a.g, PowOp::create(a.g, a.value, b.value)}; }
} // namespace

//===- One operand ----------------------------------------------------------------------------===//

#define DLC_UNARY_GRADIENT(OP, FORMULA)                                                            \
  void OP::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,          \
                         MutableArrayRef<Value> operandGradients) {                                \
    if (!wanted[0])                                                                                \
      return;                                                                                      \
    ImplicitLocOpBuilder g(getLoc(), builder);                                                     \
    [[maybe_unused]] Term dy{g, gradients[0]}, x{g, getX()}, y{g, getY()};                         \
    operandGradients[0] = FORMULA;                                                                 \
  }
// clang-format off: it takes * in arguments of macros for pointers.
DLC_UNARY_GRADIENT(NegOp, -dy)
DLC_UNARY_GRADIENT(AbsOp, select(holds(x, Comparison::GT, 0), dy,
                                 select(holds(x, Comparison::LT, 0), -dy, 0)))
DLC_UNARY_GRADIENT(ExpOp, dy * y)
DLC_UNARY_GRADIENT(LogOp, dy / x)
DLC_UNARY_GRADIENT(SqrtOp, dy * 0.5 / y)
DLC_UNARY_GRADIENT(RsqrtOp, dy * -0.5 * (y * y * y))
DLC_UNARY_GRADIENT(TanhOp, dy * (1 - y * y))
DLC_UNARY_GRADIENT(ReluOp, select(holds(y, Comparison::GT, 0), dy, 0))
DLC_UNARY_GRADIENT(SigmoidOp, dy * y * (1 - y))
DLC_UNARY_GRADIENT(SoftplusOp, dy * sigmoid(x))
DLC_UNARY_GRADIENT(ErfOp, dy * exp(-(x * x)) * (2 / std::sqrt(M_PI)))
// clang-format on
#undef DLC_UNARY_GRADIENT

//===- Two operands ---------------------------------------------------------------------------===//

#define DLC_BINARY_GRADIENT(OP, FORMULA_A, FORMULA_B)                                              \
  void OP::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,          \
                         MutableArrayRef<Value> operandGradients) {                                \
    ImplicitLocOpBuilder g(getLoc(), builder);                                                     \
    [[maybe_unused]] Term dy{g, gradients[0]}, a{g, getA()}, b{g, getB()}, y{g, getY()};           \
    if (wanted[0])                                                                                 \
      operandGradients[0] = FORMULA_A;                                                             \
    if (wanted[1])                                                                                 \
      operandGradients[1] = FORMULA_B;                                                             \
  }
// clang-format off
DLC_BINARY_GRADIENT(AddOp, dy, dy)
DLC_BINARY_GRADIENT(SubOp, dy, -dy)
DLC_BINARY_GRADIENT(MulOp, dy * b, dy * a)
DLC_BINARY_GRADIENT(DivOp, dy / b, -(dy * y / b))
DLC_BINARY_GRADIENT(MaxOp, select(holds(a, Comparison::GE, b), dy, 0),
                    select(holds(a, Comparison::GE, b), 0, dy))
DLC_BINARY_GRADIENT(MinOp, select(holds(a, Comparison::LE, b), dy, 0),
                    select(holds(a, Comparison::LE, b), 0, dy))
// a^0 is 1 everywhere, 0^0 too.
DLC_BINARY_GRADIENT(PowOp, select(holds(b, Comparison::EQ, 0), 0, dy * b * pow(a, b - 1)), Value())
// clang-format on
#undef DLC_BINARY_GRADIENT

//===- The others -----------------------------------------------------------------------------===//

void SelectOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                             MutableArrayRef<Value> operandGradients) {
  ImplicitLocOpBuilder g(getLoc(), builder);
  Term dy{g, gradients[0]};
  if (wanted[1])
    operandGradients[1] = select(getCondition(), dy, 0);
  if (wanted[2])
    operandGradients[2] = select(getCondition(), 0, dy);
}

void CastOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                           MutableArrayRef<Value> operandGradients) {
  auto type = logicalType(tensorType(getX()));
  if (wanted[0])
    operandGradients[0] = gradients[0].getType() == type
                              ? gradients[0]
                              : CastOp::create(builder, getLoc(), type, gradients[0]);
}

void DropoutOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                              MutableArrayRef<Value> operandGradients) {
  if (wanted[0])
    operandGradients[0] = DropoutOp::create(builder, getLoc(), gradients[0], getSeed(), getStep(),
                                            getFirstRow(), getRateAttr(), getStreamAttr());
}
