// Expressions by precedence climbing, with C's precedences; `..` binds weaker than these, and
// `a if c else b` weakest. `**` binds tighter than a sign before it, and its right operand may have
// one.
#include "frontend/syntax/Habits.h"
#include "frontend/syntax/Parser.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace dlc::fe {

using Kind = Token::Kind;

namespace {
struct BinaryInfo {
  BinaryOperator op;
  StringLiteral text;
  Kind token; // Identifier for `div` and `mod`
  unsigned precedence;
};
} // namespace

static constexpr BinaryInfo binaryOperators[] = {
    {BinaryOperator::Range, "..", Kind::DotDot, 1},
    {BinaryOperator::Or, "||", Kind::OrOr, 2},
    {BinaryOperator::And, "&&", Kind::AndAnd, 3},
    {BinaryOperator::Equal, "==", Kind::Equal, 4},
    {BinaryOperator::NotEqual, "!=", Kind::NotEqual, 4},
    {BinaryOperator::Less, "<", Kind::Less, 5},
    {BinaryOperator::LessEqual, "<=", Kind::LessEqual, 5},
    {BinaryOperator::Greater, ">", Kind::Greater, 5},
    {BinaryOperator::GreaterEqual, ">=", Kind::GreaterEqual, 5},
    {BinaryOperator::ShiftLeft, "<<", Kind::ShiftLeft, 6},
    {BinaryOperator::ShiftRight, ">>", Kind::ShiftRight, 6},
    {BinaryOperator::Add, "+", Kind::Plus, 7},
    {BinaryOperator::Subtract, "-", Kind::Minus, 7},
    {BinaryOperator::Multiply, "*", Kind::Star, 8},
    {BinaryOperator::Divide, "/", Kind::Slash, 8},
    {BinaryOperator::Div, "div", Kind::Identifier, 8},
    {BinaryOperator::Mod, "mod", Kind::Identifier, 8},
    {BinaryOperator::Power, "**", Kind::StarStar, 9}, // parsed by parsePower
};

static const BinaryInfo &info(BinaryOperator op) {
  return *find_if(binaryOperators, [&](const BinaryInfo &i) { return i.op == op; });
}

StringRef spelling(BinaryOperator op) { return info(op).text; }

std::optional<BinaryOperator> Parser::binaryOperator() const {
  for (const BinaryInfo &info : binaryOperators)
    if (isPunctuation(info.token) && (info.token != Kind::Identifier || token.text == info.text))
      return info.op;
  return std::nullopt;
}

ExprPtr Parser::finish(ExprPtr expr, unsigned childHeight) {
  expr->height = childHeight + 1;
  if (expr->height <= maxHeight)
    return expr;
  (void)diags.error(expr->loc, "an expression of more than " + Twine(maxHeight) +
                                   " levels; split it in parts");
  return nullptr;
}

ExprPtr Parser::makeBinary(SMLoc loc, BinaryOperator op, ExprPtr left, ExprPtr right) {
  auto binary = std::make_unique<BinaryExpr>(loc);
  binary->op = op;
  unsigned height = std::max(left->height, right->height);
  binary->left = std::move(left);
  binary->right = std::move(right);
  return finish(std::move(binary), height);
}

ExprPtr Parser::parseWholeExpression() {
  ExprPtr expr = parseExpression();
  if (expr && !token.is(Kind::EndOfFile)) {
    (void)errorExpected("the end of the expression");
    return nullptr;
  }
  return expr;
}

ExprPtr Parser::parseExpression() {
  ExprPtr expr = parseBinary(1);
  bool isChoice = isPunctuation(Kind::Identifier) && token.text == "if";
  return expr && isChoice ? parseConditional(std::move(expr)) : std::move(expr);
}

/// Behind the value of `value if condition else other`.
ExprPtr Parser::parseConditional(ExprPtr chosen) {
  auto choice = std::make_unique<ConditionalExpr>(token.loc());
  if (nesting >= maxHeight) {
    (void)diags.error(token.loc(), "nested deeper than " + Twine(maxHeight) + " levels");
    return nullptr;
  }
  ++nesting;
  scope_exit leave([&] { --nesting; });
  advance();
  choice->chosen = std::move(chosen);
  if (!(choice->condition = parseBinary(1)))
    return nullptr;
  if (!isPunctuation(Kind::Identifier) || token.text != "else") {
    (void)errorExpected("'else' and the other value", "; a choice has both: a if c else b");
    return nullptr;
  }
  advance();
  if (!(choice->other = parseExpression()))
    return nullptr;
  unsigned height =
      std::max({choice->chosen->height, choice->condition->height, choice->other->height});
  return finish(std::move(choice), height);
}

ExprPtr Parser::parseBinary(unsigned minPrecedence) {
  ExprPtr left = parseUnary();
  while (left) {
    std::optional<BinaryOperator> op = binaryOperator();
    if (!op || info(*op).precedence < minPrecedence)
      break;
    SMLoc loc = token.loc();
    advance();
    ExprPtr right = parseBinary(info(*op).precedence + 1);
    if (!right)
      return nullptr;
    left = makeBinary(loc, *op, std::move(left), std::move(right));
  }
  return left;
}

ExprPtr Parser::parseUnary() {
  if (nesting >= maxHeight) {
    (void)diags.error(token.loc(), "nested deeper than " + Twine(maxHeight) + " levels");
    return nullptr;
  }
  ++nesting;
  scope_exit leave([&] { --nesting; });
  if (!token.is(Kind::Minus) && !token.is(Kind::Not))
    return parsePower();
  auto unary = std::make_unique<UnaryExpr>(token.loc());
  unary->op = token.is(Kind::Minus) ? UnaryOperator::Negate : UnaryOperator::Not;
  advance();
  if (!(unary->operand = parseUnary()))
    return nullptr;
  unsigned height = unary->operand->height;
  return finish(std::move(unary), height);
}

ExprPtr Parser::parsePower() {
  ExprPtr base = parsePostfix();
  if (!base || !isPunctuation(Kind::StarStar))
    return base;
  SMLoc loc = token.loc();
  advance();
  ExprPtr exponent = parseUnary();
  return exponent ? makeBinary(loc, BinaryOperator::Power, std::move(base), std::move(exponent))
                  : nullptr;
}

ExprPtr Parser::parsePostfix() {
  ExprPtr expr = parsePrimary();
  while (expr) {
    unsigned height = expr->height;
    SMLoc loc = token.loc();
    if (isPunctuation(Kind::Dot)) {
      advance();
      auto member = std::make_unique<MemberExpr>(loc);
      member->object = std::move(expr);
      if (failed(expectName("a member: shape, channels or spatial", member->member)))
        return nullptr;
      expr = finish(std::move(member), height);
    } else if (isPunctuation(Kind::LeftBracket)) {
      advance();
      ++openBrackets;
      auto index = std::make_unique<IndexExpr>(loc);
      index->object = std::move(expr);
      if (!(index->index = parseExpression()))
        return nullptr;
      --openBrackets;
      if (failed(expect(Kind::RightBracket, "']' (an index is one int)")))
        return nullptr;
      height = std::max(height, index->index->height);
      expr = finish(std::move(index), height);
    } else if (isPunctuation(Kind::LeftParen)) {
      // A call is where its callee is: that is what a reader looks for.
      auto call = std::make_unique<CallExpr>(expr->loc);
      call->callee = std::move(expr);
      if (failed(parseArguments(*call)))
        return nullptr;
      for (const Argument &argument : call->arguments)
        height = std::max(height, argument.value->height);
      expr = finish(std::move(call), height);
    } else {
      break;
    }
  }
  return expr;
}

LogicalResult Parser::parseArguments(CallExpr &call) {
  advance();
  ++openBrackets;
  while (!token.is(Kind::RightParen)) {
    Argument argument;
    argument.loc = token.loc();
    if (call.arguments.size() == maxArguments)
      return diags.error(argument.loc, "more than " + Twine(maxArguments) + " arguments");
    if (token.is(Kind::Identifier) && peek().is(Kind::Assign)) {
      argument.keyword = token.text;
      for (const Argument &other : call.arguments)
        if (other.keyword == argument.keyword)
          return diags.error(argument.loc, "argument '" + argument.keyword + "' is given twice");
      advance();
      advance();
    } else if (!call.arguments.empty() && !call.arguments.back().keyword.empty()) {
      return diags.error(argument.loc, "an argument without a name follows one with a name");
    }
    if (!(argument.value = parseExpression()))
      return failure();
    call.arguments.push_back(std::move(argument));
    if (!consumeIf(Kind::Comma) && !token.is(Kind::RightParen))
      return errorExpected("',' or ')' in the arguments");
  }
  --openBrackets;
  advance();
  return success();
}

/// On the same line, so that two values would follow each other.
static bool startsOperand(const Token &token) {
  return !token.afterNewline && (token.is(Kind::Identifier) || token.is(Kind::Integer) ||
                                 token.is(Kind::Float) || token.is(Kind::LeftParen));
}

ExprPtr Parser::parsePrimary() {
  SMLoc loc = token.loc();
  switch (token.kind) {
  case Kind::Integer:
  case Kind::Float:
    return parseNumber();
  case Kind::String:
    return parseString();
  case Kind::LeftBracket:
    return parseList();
  case Kind::LeftParen: {
    advance();
    ++openBrackets;
    ExprPtr inner = parseExpression();
    if (inner && token.is(Kind::Comma))
      (void)errorExpected("')'", "; a list stands in brackets: [a, b]");
    else if (inner && succeeded(expect(Kind::RightParen, "')'"))) {
      --openBrackets;
      return inner;
    }
    return nullptr;
  }
  case Kind::Identifier:
    break;
  default:
    (void)errorExpected("a value");
    return nullptr;
  }
  if (token.text == "true" || token.text == "false") {
    auto literal = std::make_unique<BoolExpr>(loc);
    literal->value = token.text == "true";
    advance();
    return literal;
  }
  if (!syntaxHint(token.text).empty() && startsOperand(peek())) {
    (void)errorExpected("a value");
    return nullptr;
  }
  auto name = std::make_unique<NameExpr>(loc);
  if (token.text == "training") {
    name->name = token.text;
    advance();
    return name;
  }
  return succeeded(expectName("a value", name->name)) ? std::move(name) : nullptr;
}

ExprPtr Parser::parseNumber() {
  SMLoc loc = token.loc();
  StringRef text = token.text;
  bool isFloat = token.is(Kind::Float);
  advance();
  if (isFloat) {
    auto literal = std::make_unique<FloatExpr>(loc);
    if (!text.getAsDouble(literal->value, /*AllowInexact=*/true) && std::isfinite(literal->value))
      return literal;
    (void)diags.error(loc, "'" + text + "' is too large for a float");
    return nullptr;
  }
  auto literal = std::make_unique<IntegerExpr>(loc);
  if (!text.getAsInteger(10, literal->value))
    return literal;
  (void)diags.error(loc, "'" + text + "' is too large for an int (64 bits)");
  return nullptr;
}

/// Escapes are \n \t \" \\ \{ \}. The part between braces is an expression of its own, which may
/// stand in the same buffer, so that its errors point into the string.
ExprPtr Parser::parseString() {
  auto string = std::make_unique<StringExpr>(token.loc());
  StringRef rest = token.text.drop_front().drop_back();
  std::string literal;
  unsigned height = 0;
  while (!rest.empty()) {
    char c = rest.front();
    SMLoc loc = SMLoc::getFromPointer(rest.data());
    rest = rest.drop_front();
    if (c == '\\') {
      static constexpr StringLiteral escapes = "nt\"\\{}";
      size_t which = rest.empty() ? StringRef::npos : escapes.find(rest.front());
      if (which == StringRef::npos) {
        (void)diags.error(loc, "unknown escape; the known are \\n \\t \\\" \\\\ \\{ \\}");
        return nullptr;
      }
      literal += "\n\t\"\\{}"[which];
      rest = rest.drop_front();
    } else if (c == '}') {
      (void)diags.error(loc, "'}' without '{'; write \\} for the character");
      return nullptr;
    } else if (c != '{') {
      literal += c;
    } else {
      size_t end = rest.find('}');
      if (end == StringRef::npos) {
        (void)diags.error(loc, "'{' without '}'; write \\{ for the character");
        return nullptr;
      }
      Parser inner(rest.take_front(end), diags);
      inner.nesting = nesting;
      ExprPtr expr = inner.parseWholeExpression();
      if (!expr)
        return nullptr;
      height = std::max(height, expr->height);
      string->literals.push_back(std::exchange(literal, {}));
      string->expressions.push_back(std::move(expr));
      rest = rest.drop_front(end + 1);
    }
  }
  string->literals.push_back(std::move(literal));
  advance();
  return finish(std::move(string), height);
}

ExprPtr Parser::parseList() {
  auto list = std::make_unique<ListExpr>(token.loc());
  unsigned height = 0;
  advance();
  ++openBrackets;
  while (!token.is(Kind::RightBracket)) {
    ExprPtr item = parseExpression();
    if (!item)
      return nullptr;
    height = std::max(height, item->height);
    list->items.push_back(std::move(item));
    if (!consumeIf(Kind::Comma) && !token.is(Kind::RightBracket)) {
      (void)errorExpected("',' or ']'");
      return nullptr;
    }
  }
  --openBrackets;
  advance();
  return finish(std::move(list), height);
}

} // namespace dlc::fe
