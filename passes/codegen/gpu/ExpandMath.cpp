// Only scalars need them: exponents of schedules and optimizers, and programs in f64.

#include "passes/codegen/gpu/ExpandMath.h"

#include "passes/codegen/EmitScalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace dlc;

namespace {
// ln 2 in two parts, the first with so many zeros at its end that its multiples by exponents are
// exact.
// NOLINTNEXTLINE(modernize-use-std-numbers)
constexpr double ln2High = 0x1.62e42fefa38p-1, ln2Low = 0x1.ef35793c7673p-45;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

/// Arithmetic on f64 scalars.
class DoubleBuilder : public ImplicitLocOpBuilder {
public:
  DoubleBuilder(Operation *op, PatternRewriter &rewriter)
      : ImplicitLocOpBuilder(op->getLoc(), rewriter) {}

  Value number(double value) { return emitConstant(*this, getF64Type(), value); }
  Value integer(int64_t value) {
    return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(*this, x, y); }
  Value subtract(Value x, Value y) { return arith::SubFOp::create(*this, x, y); }
  Value times(Value x, Value y) { return arith::MulFOp::create(*this, x, y); }
  Value over(Value x, Value y) { return arith::DivFOp::create(*this, x, y); }
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(*this, x, y, z); }
  Value round(Value x) { return math::RoundEvenOp::create(*this, x); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(*this, condition, x, y);
  }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(*this, predicate, x, y);
  }
  Value equal(Value x, double y) { return compare(arith::CmpFPredicate::OEQ, x, number(y)); }
  Value isNaN(Value x) { return compare(arith::CmpFPredicate::UNO, x, x); }
  Value bitsOf(Value x) { return arith::BitcastOp::create(*this, getI64Type(), x); }
  Value fromBits(Value x) { return arith::BitcastOp::create(*this, getF64Type(), x); }
  Value shift(Value x, int64_t bits) { return arith::ShLIOp::create(*this, x, integer(bits)); }

  /// 2^n for the exponent of a normal number.
  Value powerOfTwo(Value n) {
    return fromBits(shift(arith::AddIOp::create(*this, n, integer(1023)), 52));
  }
  Value exp(Value x);
  Value log(Value x);
  Value pow(Value x, Value y);
  Value tanh(Value x);
};
} // namespace

/// e^x = 2^n e^r with |r| <= ln(2) / 2, e^r by Taylor's series.
Value DoubleBuilder::exp(Value given) {
  constexpr double limit = 800, terms = 13; // beyond, the result overflows or is zero
  Value x = arith::MaximumFOp::create(*this, given, number(-limit));
  x = arith::MinimumFOp::create(*this, x, number(limit));
  Value n = round(times(x, number(std::numbers::log2e)));
  Value r = fma(n, number(-ln2Low), fma(n, number(-ln2High), x));
  double factorial = 1;
  for (int k = 2; k <= terms; ++k)
    factorial *= k;
  Value sum = number(1 / factorial);
  for (int k = static_cast<int>(terms); k > 0; --k) {
    factorial /= k;
    sum = fma(sum, r, number(1 / factorial));
  }
  // In two steps: the result may be subnormal.
  Value exponent = arith::FPToSIOp::create(*this, getI64Type(), n);
  Value half = arith::ShRSIOp::create(*this, exponent, integer(1));
  Value rest = arith::SubIOp::create(*this, exponent, half);
  Value y = times(times(sum, powerOfTwo(half)), powerOfTwo(rest));
  return select(isNaN(given), given, y);
}

/// log x = e ln 2 + log m with m near 1, and log m = 2 atanh((m - 1) / (m + 1)), by its series.
Value DoubleBuilder::log(Value given) {
  constexpr int64_t mantissa = 0xFFFFFFFFFFFFF, one = int64_t{1023} << 52;
  Value isTiny = compare(arith::CmpFPredicate::OLT, given, number(0x1p-1022));
  Value x = select(isTiny, times(given, number(0x1p54)), given);
  Value bits = bitsOf(x);
  Value exponent =
      arith::SubIOp::create(*this, arith::ShRUIOp::create(*this, bits, integer(52)), integer(1023));
  Value e = arith::SIToFPOp::create(*this, getF64Type(), exponent);
  e = select(isTiny, subtract(e, number(54)), e);
  Value fraction = arith::AndIOp::create(*this, bits, integer(mantissa));
  Value m = fromBits(arith::OrIOp::create(*this, fraction, integer(one)));
  Value isLarge = compare(arith::CmpFPredicate::OGT, m, number(std::numbers::sqrt2));
  m = select(isLarge, times(m, number(0.5)), m);
  e = select(isLarge, add(e, number(1)), e);
  Value f = over(subtract(m, number(1)), add(m, number(1)));
  Value square = times(f, f), sum = number(1.0 / 23);
  for (int k = 21; k > 1; k -= 2)
    sum = fma(sum, square, number(1.0 / k));
  Value twice = add(f, f);
  // The small parts first.
  Value small = fma(e, number(ln2Low), times(times(twice, square), sum));
  Value y = add(times(e, number(ln2High)), add(twice, small));
  y = select(equal(given, infinity), given, y);
  y = select(compare(arith::CmpFPredicate::OLT, given, number(0)), number(notANumber), y);
  y = select(equal(given, 0), number(-infinity), y);
  return select(isNaN(given), given, y);
}

Value DoubleBuilder::pow(Value x, Value y) {
  Value size = exp(times(y, log(math::AbsFOp::create(*this, x))));
  Value half = times(y, number(0.5));
  Value isWhole = compare(arith::CmpFPredicate::OEQ, round(y), y);
  Value isEven = compare(arith::CmpFPredicate::OEQ, round(half), half);
  Value ofNegative = select(isEven, size, arith::NegFOp::create(*this, size));
  Value isZero = equal(x, 0);
  ofNegative = select(arith::OrIOp::create(*this, isWhole, isZero), ofNegative, number(notANumber));
  Value isNegative = compare(arith::CmpFPredicate::OLT, x, number(0));
  Value result = select(isNegative, ofNegative, size);
  return select(arith::OrIOp::create(*this, equal(y, 0), equal(x, 1)), number(1), result);
}

/// (e^2x - 1) / (e^2x + 1), the difference by Kahan's correction.
Value DoubleBuilder::tanh(Value given) {
  constexpr double limit = 22; // beyond, it rounds to one
  Value x = arith::MaximumFOp::create(*this, given, number(-limit));
  x = arith::MinimumFOp::create(*this, x, number(limit));
  Value twice = add(x, x), power = exp(twice), difference = subtract(power, number(1));
  Value corrected = over(times(difference, twice), log(power));
  Value less = select(equal(power, 1), twice, corrected);
  return over(less, add(less, number(2)));
}

namespace {
template <typename Op> struct ExpandDouble : OpRewritePattern<Op> {
  using Expansion = Value (*)(DoubleBuilder &, Op);
  ExpandDouble(MLIRContext *context, Expansion expansion)
      : OpRewritePattern<Op>(context), expansion(expansion) {}

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF64())
      return rewriter.notifyMatchFailure(op, "is no scalar of f64");
    DoubleBuilder builder(op, rewriter);
    rewriter.replaceOp(op, expansion(builder, op));
    return success();
  }

  Expansion expansion;
};
} // namespace

LogicalResult dlc::expandMath(ModuleOp module) {
  MLIRContext *context = module.getContext();
  RewritePatternSet patterns(context);
  patterns.add(std::make_unique<ExpandDouble<math::ExpOp>>(
      context, [](DoubleBuilder &b, math::ExpOp op) { return b.exp(op.getOperand()); }));
  patterns.add(std::make_unique<ExpandDouble<math::LogOp>>(
      context, [](DoubleBuilder &b, math::LogOp op) { return b.log(op.getOperand()); }));
  patterns.add(std::make_unique<ExpandDouble<math::PowFOp>>(
      context, [](DoubleBuilder &b, math::PowFOp op) { return b.pow(op.getLhs(), op.getRhs()); }));
  patterns.add(std::make_unique<ExpandDouble<math::TanhOp>>(
      context, [](DoubleBuilder &b, math::TanhOp op) { return b.tanh(op.getOperand()); }));
  return applyPatternsGreedily(module, std::move(patterns));
}
