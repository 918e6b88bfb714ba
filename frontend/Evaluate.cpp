// Expressions but for calls.
#include "frontend/Elaborator.h"
#include "frontend/operators/Arithmetic.h"
#include "frontend/syntax/Habits.h"

#include "llvm/ADT/ScopeExit.h"

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

FailureOr<Value> Elaborator::evaluate(const Expr &expr) {
  // Bounds the stack: calls nest evaluations beyond the height of one expression.
  constexpr unsigned maxDepth = 1000;
  if (depth >= maxDepth)
    return error(expr.loc,
                 "expressions in nested calls are more than " + Twine(maxDepth) + " levels deep");
  if (failed(charge(expr.loc)))
    return failure();
  ++depth;
  scope_exit leave([&] { --depth; });
  switch (expr.kind) {
  case Expr::Kind::Integer:
    return Value(cast<IntegerExpr>(expr).value);
  case Expr::Kind::Float:
    return Value(cast<FloatExpr>(expr).value);
  case Expr::Kind::Bool:
    return Value(cast<BoolExpr>(expr).value);
  case Expr::Kind::String:
    return evaluateString(cast<StringExpr>(expr));
  case Expr::Kind::List:
    return evaluateList(cast<ListExpr>(expr));
  case Expr::Kind::Name:
    return evaluateName(cast<NameExpr>(expr));
  case Expr::Kind::Member:
    return evaluateMember(cast<MemberExpr>(expr));
  case Expr::Kind::Index:
    return evaluateIndex(cast<IndexExpr>(expr));
  case Expr::Kind::Call:
    return evaluateCall(cast<CallExpr>(expr));
  case Expr::Kind::Unary:
    return evaluateUnary(cast<UnaryExpr>(expr));
  case Expr::Kind::Binary:
    return evaluateBinary(cast<BinaryExpr>(expr));
  case Expr::Kind::Conditional:
    return evaluateConditional(cast<ConditionalExpr>(expr));
  }
  llvm_unreachable("all kinds are evaluated");
}

FailureOr<Value> Elaborator::evaluateString(const StringExpr &expr) {
  std::string text = expr.literals.front();
  for (auto [part, literal] : zip(expr.expressions, drop_begin(expr.literals))) {
    FailureOr<Value> value = evaluate(*part);
    if (failed(value))
      return failure();
    if (value->isGraph())
      return error(part->loc,
                   "a string takes values known at compile time, got " + describe(*value));
    if (failed(charge(part->loc, workOn(*value))))
      return failure();
    text += toText(*value) + literal;
    if (text.size() > maxStringSize)
      return error(expr.loc, "a string of more than " + Twine(maxStringSize) + " bytes");
  }
  if (failed(charge(expr.loc, text.size() / 16)))
    return failure();
  return Value(std::move(text));
}

FailureOr<Value> Elaborator::evaluateList(const ListExpr &expr) {
  std::vector<Value> items;
  for (const ExprPtr &item : expr.items) {
    FailureOr<Value> value = evaluate(*item);
    if (failed(value))
      return failure();
    items.push_back(std::move(*value));
  }
  Value list = Value::list(std::move(items));
  if (list.isAbsent())
    return error(expr.loc, "a list of more than " + Twine(maxListWeight) + " values or " +
                               Twine(maxListDepth) + " levels");
  return list;
}

FailureOr<Value> Elaborator::evaluateName(const NameExpr &expr) {
  StringRef name = expr.name;
  if (auto variable = frame->variables.find(name); variable != frame->variables.end())
    return variable->second;
  if (name == "training")
    return Value(graph.isTraining());
  if (const Function *function = findFunction(name))
    return Value(Callable{function, nullptr});
  if (const CallSpec *op = lookupCall(name, CallKind::Operator))
    return Value(Callable{nullptr, op});
  if (is_contained(argumentWords(), name))
    return Value(name.str());
  std::vector<StringRef> known;
  for (const auto &variable : frame->variables)
    known.push_back(variable.first());
  append_range(known, argumentWords());
  return error(expr.loc, "nothing named '" + name + "' has a value here" + nameHint(name, known));
}

FailureOr<Value> Elaborator::evaluateMember(const MemberExpr &expr) {
  FailureOr<Value> object = evaluate(*expr.object);
  if (failed(object))
    return failure();
  constexpr StringLiteral members[] = {"shape", "channels", "spatial"};
  SmallVector<StringRef> names(std::begin(members), std::end(members));
  if (!is_contained(names, expr.member))
    return error(expr.loc, "no member '" + expr.member + "'; tensors have " + listNames(names) +
                               (lookupCall(expr.member, CallKind::Operator)
                                    ? ("; an operator is called: " + expr.member + "(x)").str()
                                    : nameHint(expr.member, names)));
  if (!object->isTensor())
    return error(expr.loc, "only tensors have '." + expr.member + "', got " + describe(*object));
  ArrayRef<int64_t> shape = shapeOf(object->asTensor());
  if (expr.member == "shape")
    return Value::list(shape);
  if (shape.size() < 2)
    return error(expr.loc, "'." + expr.member + "' needs a tensor [N, C, spatial...], got " +
                               describe(*object));
  return expr.member == "channels" ? Value(shape[1]) : Value::list(shape.drop_front(2));
}

FailureOr<Value> Elaborator::evaluateIndex(const IndexExpr &expr) {
  FailureOr<Value> object = evaluate(*expr.object);
  if (failed(object))
    return failure();
  FailureOr<Value> index = evaluate(*expr.index);
  if (failed(index))
    return failure();
  if (!object->isList())
    return error(expr.loc, "only lists are indexed, got " + describe(*object));
  if (!index->isInt())
    return error(expr.index->loc, "an index is an int, got " + describe(*index));
  ArrayRef<Value> items = object->asList();
  int64_t size = items.size();
  int64_t position = index->asInt();
  if (position < -size || position >= size)
    return error(expr.index->loc, "index " + Twine(position) + " of a list of " + Twine(size) +
                                      (size == 1 ? " value" : " values"));
  return items[position < 0 ? position + size : position];
}

FailureOr<Value> Elaborator::evaluateUnary(const UnaryExpr &expr) {
  FailureOr<Value> operand = evaluate(*expr.operand);
  if (failed(operand))
    return failure();
  setLocation(expr.loc, frame->path);
  return applyUnary(graph, diags, expr.loc, expr.op, *operand);
}

FailureOr<Value> Elaborator::evaluateBinary(const BinaryExpr &expr) {
  FailureOr<Value> left = evaluate(*expr.left);
  if (failed(left))
    return failure();
  bool isOr = expr.op == BinaryOperator::Or;
  bool isAnd = expr.op == BinaryOperator::And;
  if (left->isBool() && ((isOr && left->asBool()) || (isAnd && !left->asBool())))
    return left;
  FailureOr<Value> right = evaluate(*expr.right);
  if (failed(right) || failed(charge(expr.loc, workOn(*left) + workOn(*right))))
    return failure();
  if (left->isGraph() || right->isGraph())
    setLocation(expr.loc, frame->path);
  FailureOr<Value> result = applyBinary(graph, diags, expr.loc, expr.op, *left, *right);
  if (succeeded(result) && expr.op == BinaryOperator::Range &&
      failed(charge(expr.loc, workOn(*result))))
    return failure();
  return result;
}

FailureOr<Value> Elaborator::evaluateConditional(const ConditionalExpr &expr) {
  FailureOr<bool> condition = evaluateCondition("if", *expr.condition);
  if (failed(condition))
    return failure();
  return evaluate(*condition ? *expr.chosen : *expr.other);
}

} // namespace dlc::fe
