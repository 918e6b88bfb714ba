// Elementwise nn ops on scalars. Values of bf16 and f16 are f32 outside of memory: ops compute in
// f32, and a result that is not exact is rounded after each op. There are no fast-math flags: every
// op rounds as written.

#include "passes/codegen/EmitScalars.h"
#include "passes/codegen/EmitRandom.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numbers>

using namespace mlir;
using namespace dlc;

using LocBuilder = ImplicitLocOpBuilder;

Value dlc::emitConstant(LocBuilder &b, Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, static_cast<int64_t>(value)));
}

Type dlc::computeType(Type type) {
  return isa<BFloat16Type, Float16Type>(type) ? Type(Float32Type::get(type.getContext())) : type;
}

Value dlc::emitResize(LocBuilder &b, Value x, Type type) {
  Type target = getElementTypeOrSelf(type), own = getElementTypeOrSelf(x.getType());
  if (own == target)
    return x;
  // The value was rounded to the type before.
  if (auto wide = x.getDefiningOp<arith::ExtFOp>(); wide && wide.getIn().getType() == type)
    return wide.getIn();
  unsigned from = own.getIntOrFloatBitWidth(), to = target.getIntOrFloatBitWidth();
  if (to == 16 && from != 32) { // f64 to 16 bits; bf16 and f16
    Type single = b.getF32Type();
    if (auto vector = dyn_cast<VectorType>(type))
      single = vector.clone(single);
    return emitResize(b, emitResize(b, x, single), type);
  }
  return from < to ? arith::ExtFOp::create(b, type, x).getResult()
                   : arith::TruncFOp::create(b, type, x).getResult();
}

Value dlc::emitRounded(LocBuilder &b, Value x, Type type) {
  return emitResize(b, emitResize(b, x, type), computeType(type));
}

//===- Random numbers -------------------------------------------------------------------------===//

/// The 24 bits of an element, of i32: 2^24 times its uniform number.
static Value emitDraw(LocBuilder &b, nn::RandomOpInterface op, ValueRange in, Value index) {
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  };
  ValueRange scalars = in.take_back(3);
  Value first = arith::MulIOp::create(b, scalars[2], constant(elementsOfRow(op)));
  Value stream = constant(static_cast<int64_t>(op.getStream()));
  Value bits = func::CallOp::create(b, randomBitsName, b.getI32Type(),
                                    ValueRange{scalars[0], scalars[1], stream, first, index})
                   .getResult(0);
  return arith::ShRUIOp::create(b, bits, emitConstant(b, b.getI32Type(), 8));
}

static Value emitDropout(LocBuilder &b, nn::DropoutOp op, ValueRange in, Value index) {
  auto type = nn::tensorType(op.getX());
  // The uniform number >= rate, in integers.
  double rate = op.getRate().convertToDouble();
  Value least = emitConstant(b, b.getI32Type(), std::ceil(rate * 0x1.0p24));
  Value kept =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, emitDraw(b, op, in, index), least);
  Type compute = in[0].getType();
  Value scaled = arith::MulFOp::create(b, in[0], emitConstant(b, compute, 1 / (1 - rate)));
  Value y = arith::SelectOp::create(b, kept, scaled, emitConstant(b, compute, 0));
  return emitRounded(b, y, type.getElementType());
}

static Value emitUniform(LocBuilder &b, Value draw) {
  Value wide = arith::SIToFPOp::create(b, b.getF32Type(), draw);
  return arith::MulFOp::create(b, wide, emitConstant(b, b.getF32Type(), 0x1.0p-24));
}

/// sqrt(2) times the inverse error function of x = 2 u - 1 with u = (draw + 1/2) 2^-24; 2^24 x is
/// odd, so x is exact. Source: Giles 2010, "Approximating the erfinv function", table 5.
static Value emitNormal(LocBuilder &b, Value draw) {
  Type single = b.getF32Type();
  auto constant = [&](double value) { return emitConstant(b, single, value); };
  auto add = [&](Value x, Value y) -> Value { return arith::AddFOp::create(b, x, y); };
  auto times = [&](Value x, Value y) -> Value { return arith::MulFOp::create(b, x, y); };
  auto polynomial = [&](Value w, ArrayRef<double> coefficients) {
    Value y = constant(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      y = add(times(y, w), constant(coefficient));
    return y;
  };
  Value odd = arith::AddIOp::create(b, arith::AddIOp::create(b, draw, draw),
                                    emitConstant(b, b.getI32Type(), 1 - 0x1.0p24));
  Value x = times(arith::SIToFPOp::create(b, single, odd), constant(0x1.0p-24));
  Value one = constant(1);
  Value complement = times(arith::SubFOp::create(b, one, x), add(one, x));
  Value w = arith::NegFOp::create(b, math::LogOp::create(b, complement));
  Value centre = polynomial(add(w, constant(-2.5)), {2.81022636e-08, 3.43273939e-07, -3.5233877e-06,
                                                     -4.39150654e-06, 0.00021858087, -0.00125372503,
                                                     -0.00417768164, 0.246640727, 1.50140941});
  Value tail = polynomial(add(math::SqrtOp::create(b, w), constant(-3)),
                          {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                           0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
  Value isCentral = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, w, constant(5));
  Value factor = arith::SelectOp::create(b, isCentral, centre, tail);
  return times(times(factor, x), constant(std::numbers::sqrt2));
}

//===- Arithmetic -----------------------------------------------------------------------------===//

static bool isZero(Value x) {
  auto wide = x.getDefiningOp<arith::ExtFOp>();
  return matchPattern(wide ? wide.getIn() : x, m_AnyZeroFloat());
}

/// The f32 that x was before it was rounded to bf16, or null.
static Value beforeRounding(Value x) {
  auto wide = x.getDefiningOp<arith::ExtFOp>();
  auto rounded = wide ? wide.getIn().getDefiningOp<arith::TruncFOp>() : nullptr;
  return rounded && rounded.getType().isBF16() ? rounded.getIn() : Value();
}

/// A value that is positive where x is: neither a ReLU nor rounding to bf16 changes that, but for
/// denormals, which count as zero.
static Value positiveWhere(Value x) {
  for (;;) {
    auto relu = x.getDefiningOp<arith::SelectOp>();
    auto negative = relu ? relu.getCondition().getDefiningOp<arith::CmpFOp>() : nullptr;
    if (Value exact = beforeRounding(x))
      x = exact;
    else if (negative && negative.getPredicate() == arith::CmpFPredicate::OLT &&
             negative.getLhs() == relu.getFalseValue() && isZero(negative.getRhs()) &&
             isZero(relu.getTrueValue()))
      x = relu.getFalseValue();
    else
      return x;
  }
}

/// Rounding to bf16 keeps signs, but for denormals: the ReLU of a rounded value is the rounded ReLU
/// of the value, so only the result is rounded. NaN stays NaN, at the price of no more than a
/// comparison and a selection; some machines have them as one instruction.
Value dlc::emitRelu(LocBuilder &b, Value x) {
  Value exact = beforeRounding(x), from = exact ? exact : x;
  Value zero = emitConstant(b, from.getType(), 0);
  Value negative = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, from, zero);
  Value y = arith::SelectOp::create(b, negative, zero, from);
  return exact ? emitRounded(b, y, b.getBF16Type()) : y;
}

static Value emitCompare(LocBuilder &b, nn::CompareOp op, Value x, Value y) {
  if (isa<FloatType>(x.getType())) {
    using P = arith::CmpFPredicate;
    if (op.getPredicate() == nn::Comparison::GT && isZero(y))
      x = positiveWhere(x);
    constexpr P predicates[] = {P::OLT, P::OLE, P::OGT, P::OGE, P::OEQ, P::UNE};
    return arith::CmpFOp::create(b, predicates[static_cast<int>(op.getPredicate())], x, y);
  }
  using P = arith::CmpIPredicate;
  constexpr P ofSigned[] = {P::slt, P::sle, P::sgt, P::sge, P::eq, P::ne};
  constexpr P ofBool[] = {P::ult, P::ule, P::ugt, P::uge, P::eq, P::ne};
  auto index = static_cast<int>(op.getPredicate());
  return arith::CmpIOp::create(b, x.getType().isInteger(1) ? ofBool[index] : ofSigned[index], x, y);
}

static Value emitCast(LocBuilder &b, Value x, Type to) {
  Type from = x.getType();
  if (isa<FloatType>(from) && isa<FloatType>(to))
    return emitRounded(b, x, to);
  if (isa<FloatType>(from))
    return arith::FPToSIOp::create(b, to, x);
  if (isa<FloatType>(to)) {
    Type compute = computeType(to);
    Value y = from.isInteger(1) ? arith::UIToFPOp::create(b, compute, x).getResult()
                                : arith::SIToFPOp::create(b, compute, x).getResult();
    return emitRounded(b, y, to);
  }
  if (from.getIntOrFloatBitWidth() > to.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(b, to, x);
  if (from == to)
    return x;
  return from.isInteger(1) ? arith::ExtUIOp::create(b, to, x).getResult()
                           : arith::ExtSIOp::create(b, to, x).getResult();
}

/// a^b, through f64: an error of log(a) would be multiplied by b.
static Value emitPow(LocBuilder &b, Value x, Value y) {
  Value wide =
      math::PowFOp::create(b, emitResize(b, x, b.getF64Type()), emitResize(b, y, b.getF64Type()));
  return emitResize(b, wide, x.getType());
}

/// log(1 + x) for 0 <= x <= 1. MLIR has a polynomial for f32 alone, and the naive form for f64;
/// this is Kahan's.
static Value emitLog1p(LocBuilder &b, Value x) {
  if (!x.getType().isF64())
    return math::Log1pOp::create(b, x);
  Value one = emitConstant(b, x.getType(), 1), sum = arith::AddFOp::create(b, x, one);
  Value added = arith::SubFOp::create(b, sum, one);
  Value ratio = arith::DivFOp::create(b, x, added);
  Value value = arith::MulFOp::create(b, math::LogOp::create(b, sum), ratio);
  Value tiny = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, one);
  return arith::SelectOp::create(b, tiny, x, value);
}

//===- Error function -------------------------------------------------------------------------===//

namespace {
/// erf(x) = x + x near(x^2) where |x| <= limit, else 1 - e^(t beyond(t)) with t = |x|, which is 1
/// from `top` on. The polynomials are least in the largest error, relative to erf: 2^-25.8 in f32,
/// 2^-65 in f64. Coefficients begin with that of the highest power.
struct ErfPolynomials {
  double limit, top;
  ArrayRef<double> near, beyond;
};
} // namespace

static constexpr double erfOfF32Near[] = {-0.0005954712396487594, 0.004986146930605173,
                                          -0.026761872693896294,  0.11281687021255493,
                                          -0.3761248290538788,    0.12837915122509003};
static constexpr double erfOfF32Beyond[] = {
    -4.741732482216321e-06, 4.317666753195226e-05, 6.190637941472232e-05, -0.0029644127935171127,
    0.022729968652129173,   -0.10531605035066605,  -0.6355975866317749,   -1.128557801246643};
static constexpr ErfPolynomials erfOfF32{0.93, 4, erfOfF32Near, erfOfF32Beyond};

static constexpr double erfOfF64Near[] = {
    -4.222882373748816e-12,  8.703780815102563e-11,   -1.2163039308883435e-09,
    1.4792145314177081e-08,  -1.6364614373966517e-07, 1.6462043404321442e-06,
    -1.4925647464943637e-05, 0.00012055332899351954,  -0.0008548327021853062,
    0.005223977625422084,    -0.026866170645129733,   0.11283791670955119,
    -0.37612638903183754,    0.1283791670955126};
static constexpr double erfOfF64Beyond[] = {
    -1.7382725184570785e-15, 9.304904168241694e-14,   -2.324118095986947e-12,
    3.584201892678153e-11,   -3.795503141769058e-10,  2.8877035643457377e-09,
    -1.5839580867306148e-08, 5.870263865763619e-08,   -9.866122862374959e-08,
    -4.10061758123999e-07,   4.189803471446501e-06,   -1.9226957499859753e-05,
    5.7081138827065225e-05,  -0.00010208855467313806, 1.560612574241686e-05,
    0.0005534515214173286,   -0.0016705293644090678,  0.00019526192273596857,
    0.019134099690157495,    -0.10277421719351743,    -0.6366194831977087,
    -1.1283791915496253};
static constexpr ErfPolynomials erfOfF64{1, 6, erfOfF64Near, erfOfF64Beyond};

static Value emitPolynomial(LocBuilder &b, ArrayRef<double> coefficients, Value x) {
  Value sum = emitConstant(b, x.getType(), coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = math::FmaOp::create(b, sum, x, emitConstant(b, x.getType(), coefficient));
  return sum;
}

static Value emitErf(LocBuilder &b, Value x) {
  const ErfPolynomials &erf = x.getType().isF64() ? erfOfF64 : erfOfF32;
  auto constant = [&](double value) { return emitConstant(b, x.getType(), value); };
  Value size = math::AbsFOp::create(b, x);
  Value square = arith::MulFOp::create(b, x, x);
  Value near = math::FmaOp::create(b, emitPolynomial(b, erf.near, square), x, x);
  Value t = arith::MinimumFOp::create(b, size, constant(erf.top));
  Value exponent = arith::MulFOp::create(b, emitPolynomial(b, erf.beyond, t), t);
  Value rest = math::ExpOp::create(b, exponent);
  Value beyond = math::CopySignOp::create(b, arith::SubFOp::create(b, constant(1), rest), x);
  Value isBeyond = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, size, constant(erf.limit));
  return arith::SelectOp::create(b, isBeyond, beyond, near);
}

static Value emitFloat(LocBuilder &b, Operation *op, ValueRange in) {
  Type type = in[0].getType();
  auto constant = [&](double value) { return emitConstant(b, type, value); };
  auto expOf = [&](Value x) -> Value { return math::ExpOp::create(b, x); };
  Value x = in[0];
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](nn::NegOp) { return arith::NegFOp::create(b, x); })
      .Case([&](nn::AbsOp) { return math::AbsFOp::create(b, x); })
      .Case([&](nn::ExpOp) { return math::ExpOp::create(b, x); })
      .Case([&](nn::LogOp) { return math::LogOp::create(b, x); })
      .Case([&](nn::SqrtOp) { return math::SqrtOp::create(b, x); })
      .Case([&](nn::RsqrtOp) {
        return arith::DivFOp::create(b, constant(1), math::SqrtOp::create(b, x));
      })
      .Case([&](nn::TanhOp) { return math::TanhOp::create(b, x); })
      .Case([&](nn::ReluOp) { return emitRelu(b, x); })
      .Case([&](nn::SigmoidOp) {
        // The exponential that softplus needs, too; it cannot overflow.
        Value small = expOf(arith::NegFOp::create(b, math::AbsFOp::create(b, x)));
        Value negative = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, constant(0));
        Value over = arith::SelectOp::create(b, negative, small, constant(1));
        return arith::DivFOp::create(b, over, arith::AddFOp::create(b, constant(1), small));
      })
      .Case([&](nn::SoftplusOp) {
        Value small = expOf(arith::NegFOp::create(b, math::AbsFOp::create(b, x)));
        Value positive = arith::MaximumFOp::create(b, x, constant(0));
        return arith::AddFOp::create(b, positive, emitLog1p(b, small));
      })
      .Case([&](nn::ErfOp) { return emitErf(b, x); })
      .Case([&](nn::AddOp) { return arith::AddFOp::create(b, x, in[1]); })
      .Case([&](nn::SubOp) { return arith::SubFOp::create(b, x, in[1]); })
      .Case([&](nn::MulOp) { return arith::MulFOp::create(b, x, in[1]); })
      .Case([&](nn::DivOp) { return arith::DivFOp::create(b, x, in[1]); })
      .Case([&](nn::MaxOp) { return arith::MaximumFOp::create(b, x, in[1]); })
      .Case([&](nn::MinOp) { return arith::MinimumFOp::create(b, x, in[1]); })
      .Case([&](nn::PowOp) { return emitPow(b, x, in[1]); })
      .Default([](Operation *) { return Value(); });
}

Value dlc::emitScalar(LocBuilder &b, const ClusterNode &node, ValueRange in, Value index) {
  return TypeSwitch<Operation *, Value>(node.op)
      .Case([&](nn::CompareOp op) { return emitCompare(b, op, in[0], in[1]); })
      .Case([&](nn::AndOp) { return arith::AndIOp::create(b, in[0], in[1]); })
      .Case([&](nn::OrOp) { return arith::OrIOp::create(b, in[0], in[1]); })
      .Case([&](nn::NotOp) {
        return arith::XOrIOp::create(b, in[0], emitConstant(b, b.getI1Type(), 1));
      })
      .Case([&](nn::SelectOp) { return arith::SelectOp::create(b, in[0], in[1], in[2]); })
      .Case([&](nn::CastOp) { return emitCast(b, in[0], node.element); })
      .Case([&](nn::DropoutOp op) { return emitDropout(b, op, in, index); })
      .Case([&](nn::UniformOp op) {
        return emitRounded(b, emitUniform(b, emitDraw(b, op, in, index)), node.element);
      })
      .Case([&](nn::NormalOp op) {
        return emitRounded(b, emitNormal(b, emitDraw(b, op, in, index)), node.element);
      })
      .Default([&](Operation *op) {
        Value y = emitFloat(b, op, in);
        return op->hasTrait<nn::Exact>() ? y : emitRounded(b, y, node.element);
      });
}
