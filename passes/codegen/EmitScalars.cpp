// Elementwise nn ops on scalars. Values of bf16 and f16 are f32 outside of memory: ops compute in
// f32, and a result that is not exact is rounded after each op. There are no fast-math flags: every
// op rounds as written.

#include "passes/codegen/EmitScalars.h"
#include "passes/codegen/EmitRandom.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

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

//===- Dropout --------------------------------------------------------------------------------===//

static Value emitDropout(LocBuilder &b, nn::DropoutOp op, ValueRange in, Value index) {
  auto type = nn::tensorType(op.getX());
  auto constant = [&](Type integer, int64_t value) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(integer, value));
  };
  Value row = constant(b.getI64Type(), elementsOfRow(op));
  Value first = arith::MulIOp::create(b, in[3], row);
  Value stream = constant(b.getI64Type(), op.getStream());
  Value bits = func::CallOp::create(b, randomBitsName, b.getI32Type(),
                                    ValueRange{in[1], in[2], stream, first, index})
                   .getResult(0);
  // (bits >> 8) * 2^-24 >= rate, in integers.
  double rate = op.getRate().convertToDouble();
  auto least = static_cast<int64_t>(std::ceil(rate * 0x1.0p24));
  Value uniform = arith::ShRUIOp::create(b, bits, constant(b.getI32Type(), 8));
  Value kept =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, uniform, constant(b.getI32Type(), least));
  Type compute = in[0].getType();
  Value scaled = arith::MulFOp::create(b, in[0], emitConstant(b, compute, 1 / (1 - rate)));
  Value y = arith::SelectOp::create(b, kept, scaled, emitConstant(b, compute, 0));
  return emitRounded(b, y, type.getElementType());
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
static Value emitRelu(LocBuilder &b, Value x) {
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
      .Default([&](Operation *op) {
        Value y = emitFloat(b, op, in);
        return op->hasTrait<nn::Exact>() ? y : emitRounded(b, y, node.element);
      });
}
