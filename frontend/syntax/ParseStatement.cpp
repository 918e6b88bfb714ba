// Statements and blocks of statements.
#include "frontend/syntax/Habits.h"
#include "frontend/syntax/Parser.h"

#include "llvm/ADT/ScopeExit.h"

using namespace llvm;

namespace dlc::fe {

using Kind = Token::Kind;

LogicalResult Parser::parseBlock(Block &block) {
  if (nesting >= maxHeight)
    return diags.error(token.loc(), "nested deeper than " + Twine(maxHeight) + " levels");
  ++nesting;
  scope_exit leave([&] { --nesting; });
  if (failed(expect(Kind::LeftBrace, "'{'")))
    return failure();
  while (consumeIf(Kind::Semicolon))
    ;
  while (!token.is(Kind::RightBrace)) {
    std::unique_ptr<Stmt> statement = parseStatement();
    if (!statement || failed(expectEndOfStatement()))
      return failure();
    block.push_back(std::move(statement));
  }
  advance();
  return success();
}

std::unique_ptr<Stmt> Parser::parseStatement() {
  if (token.is(Kind::LeftBracket))
    return parseAssign();
  if (!token.is(Kind::Identifier)) {
    (void)errorExpected("a statement or '}'");
    return nullptr;
  }
  Token following = peek();
  bool named = following.is(Kind::Identifier) && !following.afterNewline;
  if (token.text == "for")
    return parseFor();
  if (token.text == "if")
    return parseIf();
  if (token.text == "require")
    return parseRequire();
  if (token.text == "print" && following.is(Kind::String) && !following.afterNewline)
    return parsePrint();
  if (token.text == "return")
    return parseReturn();
  if (token.text == "input" && named)
    return parseInput();
  if (token.text == "output" && named)
    return parseSink<OutputStmt>(/*named=*/true);
  if (token.text == "metric" && named)
    return parseSink<MetricStmt>(/*named=*/true);
  if (token.text == "loss")
    return parseSink<LossStmt>(/*named=*/false);
  if (token.text == "fn") {
    (void)diags.error(token.loc(), "functions are defined at the top of a file, beside the model");
    return nullptr;
  }
  return parseAssign();
}

/// What to write instead of `name` and the token that follows.
std::string Parser::assignHint(StringRef name) const {
  std::string hint = nameHint(name, {});
  if (!hint.empty())
    return hint;
  if (token.is(Kind::Comma))
    return "; a list is taken apart in brackets: [a, b] = [1, 2]";
  if (token.is(Kind::LeftBracket))
    return "; lists do not change: make a new one";
  return "";
}

std::unique_ptr<Stmt> Parser::parseAssign() {
  auto assign = std::make_unique<AssignStmt>(token.loc());
  Pattern &target = assign->target;
  target.loc = assign->loc;
  if (failed(token.is(Kind::LeftBracket) ? parsePattern(target, 0)
                                         : expectName("a statement", target.name)))
    return nullptr;
  SMLoc opLoc = token.loc();
  if (target.name.empty() && !token.is(Kind::Assign)) {
    (void)errorExpected("'=' and the list to take apart");
    return nullptr;
  }
  std::optional<BinaryOperator> op;
  switch (token.kind) {
  case Kind::Assign:
    break;
  case Kind::PlusAssign:
    op = BinaryOperator::Add;
    break;
  case Kind::MinusAssign:
    op = BinaryOperator::Subtract;
    break;
  case Kind::StarAssign:
    op = BinaryOperator::Multiply;
    break;
  case Kind::SlashAssign:
    op = BinaryOperator::Divide;
    break;
  default:
    (void)errorExpected(("'=' after '" + target.name + "' (a statement assigns a value)").str(),
                        assignHint(target.name));
    return nullptr;
  }
  advance();
  assign->value = parseExpression();
  if (op && assign->value) {
    auto old = std::make_unique<NameExpr>(assign->loc);
    old->name = target.name;
    assign->value = makeBinary(opLoc, *op, std::move(old), std::move(assign->value));
  }
  return assign->value ? std::move(assign) : nullptr;
}

LogicalResult Parser::parsePattern(Pattern &pattern, unsigned depth) {
  pattern.loc = token.loc();
  if (!token.is(Kind::LeftBracket))
    return expectName("a name or a list of names", pattern.name);
  if (depth >= 8)
    return diags.error(token.loc(), "a pattern nested deeper than 8 levels");
  do {
    advance(); // '[' or ','
    if (failed(parsePattern(pattern.items.emplace_back(), depth + 1)))
      return failure();
  } while (token.is(Kind::Comma));
  return expect(Kind::RightBracket, "',' or ']'");
}

std::unique_ptr<Stmt> Parser::parseFor() {
  auto loop = std::make_unique<ForStmt>(token.loc());
  advance();
  if (failed(parsePattern(loop->pattern, 0)))
    return nullptr;
  if (!token.isWord("in")) {
    (void)errorExpected("'in' and what to iterate over");
    return nullptr;
  }
  advance();
  if (!(loop->iterable = parseExpression()) || failed(parseBlock(loop->body)))
    return nullptr;
  return loop;
}

std::unique_ptr<Stmt> Parser::parseIf() {
  auto branch = std::make_unique<IfStmt>(token.loc());
  advance();
  if (!(branch->condition = parseExpression()) || failed(parseBlock(branch->thenBlock)))
    return nullptr;
  if (!token.isWord("else"))
    return branch;
  advance();
  if (!token.isWord("if"))
    return succeeded(parseBlock(branch->elseBlock)) ? std::move(branch) : nullptr;
  if (nesting >= maxHeight) {
    (void)diags.error(token.loc(), "more than " + Twine(maxHeight) + " nested branches");
    return nullptr;
  }
  ++nesting;
  std::unique_ptr<Stmt> nested = parseIf();
  --nesting;
  if (!nested)
    return nullptr;
  branch->elseBlock.push_back(std::move(nested));
  return branch;
}

std::unique_ptr<Stmt> Parser::parseRequire() {
  auto require = std::make_unique<RequireStmt>(token.loc());
  advance();
  if (!(require->condition = parseExpression()) ||
      failed(expect(Kind::Comma, "',' and the text of the message")) ||
      !(require->message = parseExpression()))
    return nullptr;
  return require;
}

std::unique_ptr<Stmt> Parser::parsePrint() {
  auto print = std::make_unique<PrintStmt>(token.loc());
  advance();
  return (print->message = parseString()) ? std::move(print) : nullptr;
}

std::unique_ptr<Stmt> Parser::parseReturn() {
  auto result = std::make_unique<ReturnStmt>(token.loc());
  advance();
  if (endsStatement()) {
    (void)errorExpected("the value to return");
    return nullptr;
  }
  if (!(result->value = parseExpression()))
    return nullptr;
  if (token.is(Kind::Comma)) {
    (void)errorExpected("one value to return", "; a list has several: return [a, b]");
    return nullptr;
  }
  return result;
}

std::unique_ptr<Stmt> Parser::parseInput() {
  auto input = std::make_unique<InputStmt>(token.loc());
  advance();
  if (failed(expectName("the input's name", input->name)) ||
      failed(expect(Kind::Colon, "':' and the input's type, such as f32[batch, 1, size, size]")))
    return nullptr;
  input->typeLoc = token.loc();
  if (failed(expectName("an element type, f32 or i32", input->element)) ||
      failed(expect(Kind::LeftBracket, "'[' and the shape")))
    return nullptr;
  ++openBrackets;
  do {
    Dimension dimension;
    if (!(dimension.value = parseExpression()))
      return nullptr;
    dimension.splice = consumeIf(Kind::Ellipsis);
    input->dimensions.push_back(std::move(dimension));
  } while (consumeIf(Kind::Comma));
  --openBrackets;
  return succeeded(expect(Kind::RightBracket, "',' or ']'")) ? std::move(input) : nullptr;
}

template <typename Sink> std::unique_ptr<Stmt> Parser::parseSink(bool named) {
  auto sink = std::make_unique<Sink>(token.loc());
  std::string form = (token.text + (named ? " NAME = value" : " = value")).str();
  advance();
  if ((named && failed(expectName("a name", sink->name))) ||
      failed(expect(Kind::Assign, "'=' of '" + form + "'")))
    return nullptr;
  return (sink->value = parseExpression()) ? std::move(sink) : nullptr;
}

} // namespace dlc::fe
