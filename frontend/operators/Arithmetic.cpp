// By kind of operands: compile-time ints, floats and bools, strings, lists; means, which stay sums
// of terms under + - and multiplication by numbers and become functions of means under all other
// arithmetic with means and numbers; all else is elementwise on tensors, whose powers have constant
// exponents.
#include "frontend/operators/Arithmetic.h"
#include "runtime/artifact/Formula.h"

#include <cmath>

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

using Op = BinaryOperator;

namespace {
struct Operation {
  Graph &graph;
  Diagnostics &diags;
  SMLoc loc;
  Op op;

  LogicalResult error(const Twine &message) const { return diags.error(loc, message); }
  LogicalResult mismatch(const Value &a, const Value &b) const {
    bool isText = a.isString() || b.isString();
    return error("'" + spelling(op) + "' does not apply to " + describe(a) + " and " + describe(b) +
                 (isText ? "; a string takes values in as \"{x}\"" : ""));
  }

  FailureOr<Value> ints(int64_t a, int64_t b) const;
  FailureOr<Value> floats(double a, double b) const;
  FailureOr<Value> lists(const Value &a, const Value &b) const;
  FailureOr<Value> means(const Value &a, const Value &b) const;
  FailureOr<Value> tensors(const Value &a, const Value &b) const;
  FailureOr<Value> powers(const Value &a, const Value &b) const;
  LogicalResult checkOperands(const Value &a, const Value &b) const;
};
} // namespace

static bool isComparison(Op op) { return op >= Op::Equal && op <= Op::GreaterEqual; }
static bool isArithmetic(Op op) { return op >= Op::Add && op <= Op::Divide; }

template <typename T> static bool compare(Op op, const T &a, const T &b) {
  switch (op) {
  case Op::Equal:
    return a == b;
  case Op::NotEqual:
    return a != b;
  case Op::Less:
    return a < b;
  case Op::LessEqual:
    return a <= b;
  case Op::Greater:
    return a > b;
  default:
    return a >= b;
  }
}

//===- Compile-time values --------------------------------------------------------------------===//

/// base^exponent by squaring; false if it is too large.
static bool raise(int64_t base, int64_t exponent, int64_t &result) {
  result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 && __builtin_mul_overflow(result, base, &result))
      return false;
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base))
      return false;
  }
  return true;
}

FailureOr<Value> Operation::ints(int64_t a, int64_t b) const {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
  case Op::Add:
    overflow = __builtin_add_overflow(a, b, &result);
    break;
  case Op::Subtract:
    overflow = __builtin_sub_overflow(a, b, &result);
    break;
  case Op::Multiply:
    overflow = __builtin_mul_overflow(a, b, &result);
    break;
  case Op::Divide:
  case Op::Div:
  case Op::Mod: {
    if (b == 0)
      return error("division of " + Twine(a) + " by zero");
    if ((overflow = a == INT64_MIN && b == -1))
      break;
    if (op == Op::Divide && a % b != 0)
      return error(Twine(a) + " / " + Twine(b) +
                   " is no int; write 'div' to round down, or make one a float");
    // Rounded down, so that mod has the sign of the divisor.
    bool down = a % b != 0 && (a < 0) != (b < 0);
    result = op == Op::Mod ? a % b + (down ? b : 0) : a / b - down;
    break;
  }
  case Op::Power:
    if (b < 0)
      return floats(static_cast<double>(a), static_cast<double>(b));
    overflow = !raise(a, b, result);
    break;
  case Op::ShiftLeft:
  case Op::ShiftRight:
    if (b < 0 || b > 62)
      return error("a shift by " + Twine(b) + "; it must be 0 to 62");
    if (op == Op::ShiftRight)
      result = a >> b;
    else
      overflow = __builtin_mul_overflow(a, int64_t{1} << b, &result);
    break;
  default:
    return Value(compare(op, a, b));
  }
  if (overflow)
    return error(Twine(a) + " " + spelling(op) + " " + Twine(b) + " is too large for an int");
  return Value(result);
}

FailureOr<Value> Operation::floats(double a, double b) const {
  double result = 0;
  switch (op) {
  case Op::Add:
    result = a + b;
    break;
  case Op::Subtract:
    result = a - b;
    break;
  case Op::Multiply:
    result = a * b;
    break;
  case Op::Divide:
    if (b == 0)
      return error("division by zero");
    result = a / b;
    break;
  case Op::Power:
    result = std::pow(a, b);
    if (!std::isfinite(result))
      return error(toText(Value(a)) + " ** " + toText(Value(b)) + " is no finite number");
    break;
  default:
    return Value(compare(op, a, b));
  }
  if (!std::isfinite(result))
    return error("the result is too large for a float");
  return Value(result);
}

FailureOr<Value> Operation::lists(const Value &a, const Value &b) const {
  std::vector<Value> items(a.asList());
  items.insert(items.end(), b.asList().begin(), b.asList().end());
  Value joined = Value::list(std::move(items));
  if (joined.isAbsent())
    return error("a list of more than " + Twine(maxListWeight) + " values");
  return joined;
}

/// start..end as a list of ints, without end.
static FailureOr<Value> range(const Operation &op, const Value &a, const Value &b) {
  if (!a.isInt() || !b.isInt())
    return op.mismatch(a, b);
  std::vector<Value> items;
  int64_t count = 0;
  if (__builtin_sub_overflow(b.asInt(), a.asInt(), &count) ||
      count >= static_cast<int64_t>(maxListWeight))
    return op.error("a range of more than " + Twine(maxListWeight) + " values");
  for (int64_t i = a.asInt(); i < b.asInt(); ++i)
    items.emplace_back(i);
  return Value::list(std::move(items));
}

//===- Means ----------------------------------------------------------------------------------===//

static Better scaled(Better better, double factor) {
  if (factor == 0 || better == Better::Unknown)
    return Better::Unknown;
  return (factor > 0) == (better == Better::Higher) ? Better::Higher : Better::Lower;
}

/// Of a sum of terms.
static Value scaled(const Mean &mean, double factor) {
  Mean result = mean;
  for (Term &term : result.terms)
    term.weight *= factor;
  result.better = scaled(mean.better, factor);
  return Value(std::move(result));
}

/// + - * / of means and numbers, at least one of them a mean.
FailureOr<Value> Operation::means(const Value &a, const Value &b) const {
  // So that a sum of losses may begin with the number 0.
  if (op == Op::Add && a.isNumber() && a.asDouble() == 0)
    return b;
  if ((op == Op::Add || op == Op::Subtract) && b.isNumber() && b.asDouble() == 0)
    return a;
  auto isSum = [](const Value &value) { return !value.isMean() || value.asMean().formula.empty(); };
  std::optional<double> factor;
  if (op == Op::Multiply && a.isNumber())
    factor = a.asDouble();
  else if (op == Op::Multiply && b.isNumber())
    factor = b.asDouble();
  else if (op == Op::Divide && b.isNumber() && b.asDouble() != 0)
    factor = 1 / b.asDouble();
  if (factor && isSum(a) && isSum(b))
    return scaled(a.isMean() ? a.asMean() : b.asMean(), *factor);
  if (a.isMean() && b.isMean() && isSum(a) && isSum(b) && (op == Op::Add || op == Op::Subtract)) {
    constexpr size_t maxTerms = rt::Formula::maxMeans;
    Mean sum = a.asMean();
    Value right = op == Op::Add ? b : scaled(b.asMean(), -1);
    const std::vector<Term> &terms = right.asMean().terms;
    if (sum.terms.size() + terms.size() > maxTerms)
      return error("a loss of more than " + Twine(maxTerms) + " terms");
    sum.terms.insert(sum.terms.end(), terms.begin(), terms.end());
    if (sum.better != right.asMean().better)
      sum.better = Better::Unknown;
    sum.differentiable &= right.asMean().differentiable;
    if (!right.asMean().differentiable)
      sum.origin = right.asMean().origin;
    return Value(std::move(sum));
  }
  for (const Value *value : {&a, &b})
    if (value->isNumber() && !fitsF32(value->asDouble()))
      return error(toText(*value) + " is too large for a tensor of f32");
  static constexpr StringLiteral words[] = {"add", "sub", "mul", "div"};
  std::optional<Mean> function =
      applyFormula(words[static_cast<size_t>(op) - static_cast<size_t>(Op::Add)], a, b);
  if (!function)
    return error("a function of too many means");
  if (factor)
    function->better = scaled(a.isMean() ? a.asMean().better : b.asMean().better, *factor);
  return Value(std::move(*function));
}

//===- Tensors --------------------------------------------------------------------------------===//

FailureOr<SmallVector<int64_t>> broadcastShape(Diagnostics &diags, SMLoc loc, StringRef what,
                                               mlir::Type a, mlir::Type b) {
  ArrayRef<int64_t> left = cast<mlir::RankedTensorType>(a).getShape();
  ArrayRef<int64_t> right = cast<mlir::RankedTensorType>(b).getShape();
  if (left.empty() || right.empty())
    return SmallVector<int64_t>(left.empty() ? right : left);
  bool fits = left.size() == right.size();
  SmallVector<int64_t> shape;
  for (size_t i = 0; fits && i < left.size(); ++i) {
    fits = left[i] == right[i] || left[i] == 1 || right[i] == 1;
    shape.push_back(std::max(left[i], right[i]));
  }
  if (!fits)
    return diags.error(loc, what + " needs equal shapes (axes of size 1 repeat), got " +
                                typeText(a) + " and " + typeText(b));
  if (elementCount(shape) > maxElements)
    return diags.error(loc, "a tensor of more than 2^40 elements, from " + typeText(a) + " and " +
                                typeText(b));
  return shape;
}

static mlir::Value makeBinary(Graph &graph, Op op, mlir::Value a, mlir::Value b) {
  mlir::OpBuilder &builder = graph.builder;
  switch (op) {
  case Op::Or:
    return nn::OrOp::create(builder, graph.loc, a, b);
  case Op::And:
    return nn::AndOp::create(builder, graph.loc, a, b);
  case Op::Add:
    return nn::AddOp::create(builder, graph.loc, a, b);
  case Op::Subtract:
    return nn::SubOp::create(builder, graph.loc, a, b);
  case Op::Multiply:
    return nn::MulOp::create(builder, graph.loc, a, b);
  case Op::Divide:
    return nn::DivOp::create(builder, graph.loc, a, b);
  case Op::Equal:
    return graph.compare(nn::Comparison::EQ, a, b);
  case Op::NotEqual:
    return graph.compare(nn::Comparison::NE, a, b);
  case Op::Less:
    return graph.compare(nn::Comparison::LT, a, b);
  case Op::LessEqual:
    return graph.compare(nn::Comparison::LE, a, b);
  case Op::Greater:
    return graph.compare(nn::Comparison::GT, a, b);
  case Op::GreaterEqual:
    return graph.compare(nn::Comparison::GE, a, b);
  default:
    llvm_unreachable("refused by the caller");
  }
}

static bool isBoolTensor(const Value &value) {
  return value.isTensor() && nn::tensorType(value.asTensor()).getElementType().isInteger(1);
}

static bool isIntTensor(const Value &value) {
  return value.isTensor() && nn::tensorType(value.asTensor()).getElementType().isInteger(32);
}

/// The operand as the op wants it: bools for || and &&, ints when both are (an int constant counts
/// if it fits), else f32.
static mlir::Value convert(Graph &graph, const Value &value, bool logical, bool integral) {
  if (logical || (integral && value.isTensor()))
    return value.asTensor();
  if (integral)
    return graph.constant(graph.i32({}), value.asDouble());
  return graph.toFloat(value);
}

/// Of elementwise arithmetic.
LogicalResult Operation::checkOperands(const Value &a, const Value &b) const {
  for (const Value *value : {&a, &b})
    if (value->isMean() && !value->asMean().differentiable)
      return error(value->asMean().origin + " makes a metric; it takes part in arithmetic "
                                            "with numbers and other metrics alone");
  for (const Value *value : {&a, &b})
    if (value->isNumber() && !fitsF32(value->asDouble()))
      return error(toText(*value) + " is too large for a tensor of f32");
  return success();
}

FailureOr<Value> Operation::tensors(const Value &a, const Value &b) const {
  auto isOperand = [](const Value &value) { return value.isGraph() || value.isNumber(); };
  bool logical = op == Op::Or || op == Op::And;
  if (!isOperand(a) || !isOperand(b) || (!logical && !isArithmetic(op) && !isComparison(op)) ||
      (logical && !(isBoolTensor(a) && isBoolTensor(b))))
    return mismatch(a, b);
  if (failed(checkOperands(a, b)))
    return failure();
  auto isInt32 = [](const Value &value) {
    return isIntTensor(value) || (value.isInt() && isInt<32>(value.asInt()));
  };
  bool integral = isComparison(op) && isInt32(a) && isInt32(b);
  mlir::Value left = convert(graph, a, logical, integral);
  mlir::Value right = convert(graph, b, logical, integral);
  std::string what = ("'" + spelling(op) + "'").str();
  FailureOr<SmallVector<int64_t>> shape =
      broadcastShape(diags, loc, what, left.getType(), right.getType());
  if (failed(shape))
    return failure();
  return Value(
      makeBinary(graph, op, graph.broadcast(left, *shape), graph.broadcast(right, *shape)));
}

/// x^n by squaring, for n from 1 on.
static mlir::Value raise(Graph &graph, mlir::Value x, int64_t n) {
  auto times = [&](mlir::Value a, mlir::Value b) -> mlir::Value {
    return nn::MulOp::create(graph.builder, graph.loc, a, b);
  };
  mlir::Value result;
  for (; n > 0; n /= 2) {
    if (n % 2)
      result = result ? times(result, x) : x;
    if (n > 1)
      x = times(x, x);
  }
  return result;
}

/// A tensor to a power that is known. Few products and roots are cheaper than a power, as exact,
/// and have the same derivative at 0.
FailureOr<Value> Operation::powers(const Value &a, const Value &b) const {
  if (a.isNumber() && b.isGraph())
    return error("the exponent of '**' is a number known when compiling; write exp(x * log(" +
                 toText(a) + "))");
  if (b.isGraph())
    return error("the exponent of '**' is a number known when compiling; write exp(p * log(x)) for "
                 "a positive x");
  if (!a.isGraph() || !b.isNumber())
    return mismatch(a, b);
  if (failed(checkOperands(a, b)))
    return failure();
  constexpr double maxProducts = 8;
  mlir::OpBuilder &builder = graph.builder;
  mlir::Value x = graph.toFloat(a);
  mlir::RankedTensorType type = nn::tensorType(x);
  double p = b.asDouble();
  if (p == 0)
    return Value(graph.constant(type, 1));
  if (p == 0.5)
    return Value(mlir::Value(nn::SqrtOp::create(builder, graph.loc, x)));
  if (p == -0.5)
    return Value(mlir::Value(nn::RsqrtOp::create(builder, graph.loc, x)));
  if (p != std::trunc(p) || std::fabs(p) > maxProducts)
    return Value(mlir::Value(nn::PowOp::create(builder, graph.loc, x, graph.constant(type, p))));
  mlir::Value power = raise(graph, x, std::abs(static_cast<int64_t>(p)));
  if (p > 0)
    return Value(power);
  return Value(mlir::Value(nn::DivOp::create(builder, graph.loc, graph.constant(type, 1), power)));
}

//===- Entry points ---------------------------------------------------------------------------===//

FailureOr<Value> applyBinary(Graph &graph, Diagnostics &diags, SMLoc loc, BinaryOperator op,
                             const Value &a, const Value &b) {
  Operation operation{graph, diags, loc, op};
  if (op == Op::Power && (a.isGraph() || b.isGraph()))
    return operation.powers(a, b);
  auto isTerm = [](const Value &value) { return value.isMean() || value.isNumber(); };
  if ((a.isMean() || b.isMean()) && isTerm(a) && isTerm(b) && isArithmetic(op))
    return operation.means(a, b);
  if (a.isGraph() || b.isGraph())
    return operation.tensors(a, b);
  if (op == Op::Range)
    return range(operation, a, b);
  if (op == Op::Or || op == Op::And) {
    if (!a.isBool() || !b.isBool())
      return operation.mismatch(a, b);
    return Value(op == Op::Or ? a.asBool() || b.asBool() : a.asBool() && b.asBool());
  }
  if (a.isIntegral() && b.isIntegral())
    return operation.ints(a.asIntegral(), b.asIntegral());
  if (a.isNumber() && b.isNumber() && (isArithmetic(op) || isComparison(op) || op == Op::Power))
    return operation.floats(a.asDouble(), b.asDouble());
  if (op == Op::Equal || op == Op::NotEqual)
    return Value(areEqual(a, b) == (op == Op::Equal));
  if (a.isString() && b.isString() && isComparison(op))
    return Value(compare(op, a.asString(), b.asString()));
  if (a.isString() && b.isString() && op == Op::Add) {
    if (a.asString().size() + b.asString().size() > maxStringSize)
      return operation.error("a string of more than " + Twine(maxStringSize) + " bytes");
    return Value(a.asString() + b.asString());
  }
  if (a.isList() && b.isList() && op == Op::Add)
    return operation.lists(a, b);
  return operation.mismatch(a, b);
}

FailureOr<Value> applyUnary(Graph &graph, Diagnostics &diags, SMLoc loc, UnaryOperator op,
                            const Value &operand) {
  if (op == UnaryOperator::Negate) {
    if (operand.isIntegral())
      return applyBinary(graph, diags, loc, Op::Subtract, Value(int64_t{0}), operand);
    if (operand.isFloat())
      return Value(-operand.asDouble());
    if (operand.isMean())
      return applyBinary(graph, diags, loc, Op::Multiply, operand, Value(int64_t{-1}));
    if (operand.isTensor()) {
      mlir::Value x = graph.toFloat(operand.asTensor());
      return Value(mlir::Value(nn::NegOp::create(graph.builder, graph.loc, x)));
    }
  } else {
    if (operand.isBool())
      return Value(!operand.asBool());
    if (isBoolTensor(operand))
      return Value(mlir::Value(nn::NotOp::create(graph.builder, graph.loc, operand.asTensor())));
  }
  return diags.error(loc, Twine("'") + (op == UnaryOperator::Negate ? "-" : "!") +
                              "' does not apply to " + describe(operand));
}

} // namespace dlc::fe
