// Tokens, files and the blocks beside the model; ParseStatement.cpp and ParseExpression.cpp have
// the rest.
#include "frontend/syntax/Parser.h"

#include "frontend/syntax/Habits.h"

using namespace llvm;

namespace dlc::fe {

using Kind = Token::Kind;

Parser::Parser(StringRef source, Diagnostics &diags) : diags(diags), lexer(source) { advance(); }

//===- Tokens ---------------------------------------------------------------------------------===//

bool Parser::consumeIf(Kind kind) {
  if (!token.is(kind))
    return false;
  advance();
  return true;
}

LogicalResult Parser::expect(Kind kind, StringRef what) {
  return consumeIf(kind) ? success() : errorExpected(what);
}

static bool isReserved(StringRef word) {
  static constexpr StringLiteral words[] = {"import", "fn",   "model",  "for",     "in",
                                            "if",     "else", "return", "require", "true",
                                            "false",  "div",  "mod",    "training"};
  return is_contained(words, word);
}

LogicalResult Parser::expectName(StringRef what, StringRef &name) {
  if (!token.is(Kind::Identifier))
    return errorExpected(what);
  if (isReserved(token.text))
    return diags.error(token.loc(), "expected " + what + ", got '" + token.text +
                                        "', which is a word of the language");
  name = token.text;
  advance();
  return success();
}

/// Without a hint, that for the token, unless it is a word that may well begin the line.
LogicalResult Parser::errorExpected(StringRef what, StringRef hint) {
  if (token.is(Kind::Error))
    return diags.error(token.loc(), token.message);
  std::string text = hint.str();
  if (hint.empty() && !(token.afterNewline && isReserved(token.text)))
    text = syntaxHint(token.text);
  if (token.afterComment && (openBrackets > 0 || what == "'{'"))
    text += "; '//' begins a comment, a quotient rounded down is 'a div b'";
  return diags.error(token.loc(), "expected " + what + ", got " + describe(token) + text);
}

bool Parser::endsStatement() const {
  return token.afterNewline || token.is(Kind::EndOfFile) || token.is(Kind::RightBrace) ||
         token.is(Kind::Semicolon);
}

LogicalResult Parser::expectEndOfStatement() {
  if (!endsStatement())
    return errorExpected("the end of the statement (a new line or ';')");
  while (consumeIf(Kind::Semicolon))
    ;
  return success();
}

bool Parser::isPunctuation(Kind kind) const {
  return token.is(kind) && (openBrackets > 0 || !token.afterNewline);
}

Token Parser::peek() const {
  Lexer ahead = lexer;
  return ahead.next();
}

//===- Files ----------------------------------------------------------------------------------===//

LogicalResult Parser::parseFile(ModelFile &file, std::vector<Import> &imports) {
  while (consumeIf(Kind::Semicolon))
    ;
  while (!token.is(Kind::EndOfFile))
    if (failed(parseTopLevel(file, imports)) || failed(expectEndOfStatement()))
      return failure();
  return success();
}

LogicalResult Parser::parseTopLevel(ModelFile &file, std::vector<Import> &imports) {
  SMLoc loc = token.loc();
  if (token.isWord("import"))
    return parseImport(imports);
  if (token.isWord("fn")) {
    auto function = parseFunction("the function's name");
    if (!function)
      return failure();
    file.functions.push_back(std::move(function));
    return success();
  }
  if (token.isWord("model")) {
    if (file.model)
      return diags.error(loc, "a second model; a program has one");
    file.model = parseFunction("the model's name");
    return success(file.model != nullptr);
  }
  auto once = [&](bool first) {
    return first ? success() : diags.error(loc, "a second '" + token.text + "' block");
  };
  if (token.isWord("data"))
    return failed(once(file.data.empty() && file.chains.empty() && file.sources.empty()))
               ? failure()
               : parseDataBlock(file);
  if (token.isWord("train"))
    return failed(once(file.train.empty())) ? failure() : parseEntries(file.train);
  if (token.isWord("predict"))
    return failed(once(file.predict.empty())) ? failure() : parseEntries(file.predict);
  return errorExpected("'import', 'fn', 'model', 'data', 'train' or 'predict'");
}

LogicalResult Parser::parseImport(std::vector<Import> &imports) {
  advance();
  SMLoc loc = token.loc();
  ExprPtr path = token.is(Kind::String) ? parseString() : nullptr;
  auto *text = dyn_cast_if_present<StringExpr>(path.get());
  if (!text)
    return token.is(Kind::String) ? failure() : errorExpected("a file name in quotes");
  if (!text->expressions.empty())
    return diags.error(loc, "the name of an imported file is fixed; it cannot contain {...}");
  imports.push_back({loc, text->literals.front()});
  return success();
}

std::unique_ptr<Function> Parser::parseFunction(StringRef what) {
  advance();
  auto function = std::make_unique<Function>();
  function->loc = token.loc();
  if (failed(expectName(what, function->name)) || failed(parseParameters(*function)) ||
      failed(parseBlock(function->body)))
    return nullptr;
  return function;
}

LogicalResult Parser::parseParameters(Function &function) {
  if (failed(expect(Kind::LeftParen, "'(' and the parameters")))
    return failure();
  ++openBrackets;
  while (!token.is(Kind::RightParen)) {
    Parameter parameter;
    parameter.loc = token.loc();
    if (failed(expectName("a parameter's name or ')'", parameter.name)))
      return failure();
    if (function.parameters.size() == maxArguments)
      return diags.error(parameter.loc, "more than " + Twine(maxArguments) + " parameters");
    for (const Parameter &other : function.parameters)
      if (other.name == parameter.name)
        return diags.error(parameter.loc, "a second parameter named '" + parameter.name + "'");
    if (consumeIf(Kind::Assign) && !(parameter.defaultValue = parseExpression()))
      return failure();
    function.parameters.push_back(std::move(parameter));
    if (!consumeIf(Kind::Comma) && !token.is(Kind::RightParen))
      return errorExpected("',' or ')' after a parameter");
  }
  --openBrackets;
  return expect(Kind::RightParen, "')'");
}

LogicalResult Parser::parseEntry(std::vector<Entry> &entries) {
  Entry entry;
  entry.loc = token.loc();
  if (token.is(Kind::Identifier) && peek().is(Kind::LeftParen)) {
    entry.name = token.text; // a call that names its own entry, such as early_stop(patience = 5)
    if (!(entry.value = parsePostfix()))
      return failure();
    return addEntry(entries, std::move(entry));
  }
  if (failed(expectName("a setting: NAME = VALUE", entry.name)) ||
      failed(expect(Kind::Assign, ("'=' after '" + entry.name + "'").str())) ||
      !(entry.value = parseExpression()))
    return failure();
  return addEntry(entries, std::move(entry));
}

LogicalResult Parser::addEntry(std::vector<Entry> &entries, Entry entry) {
  if (entries.size() == maxArguments)
    return diags.error(entry.loc, "more than " + Twine(maxArguments) + " settings");
  for (const Entry &other : entries)
    if (other.name == entry.name)
      return diags.error(entry.loc, "'" + entry.name + "' is set twice in this block");
  entries.push_back(std::move(entry));
  return success();
}

LogicalResult Parser::parseEntries(std::vector<Entry> &entries) {
  advance();
  if (failed(expect(Kind::LeftBrace, "'{'")))
    return failure();
  while (consumeIf(Kind::Semicolon))
    ;
  while (!token.is(Kind::RightBrace))
    if (failed(parseEntry(entries)) || failed(expectEndOfStatement()))
      return failure();
  advance();
  return success();
}

LogicalResult Parser::parseDataBlock(ModelFile &file) {
  advance();
  if (failed(expect(Kind::LeftBrace, "'{'")))
    return failure();
  while (consumeIf(Kind::Semicolon))
    ;
  while (!token.is(Kind::RightBrace)) {
    LogicalResult parsed = token.isWord("source") && peek().is(Kind::Identifier) ? parseSource(file)
                           : peek().is(Kind::Assign) ? parseEntry(file.data)
                                                     : parseChain(file);
    if (failed(parsed) || failed(expectEndOfStatement()))
      return failure();
  }
  advance();
  return success();
}

LogicalResult Parser::parseSource(ModelFile &file) {
  SourceDecl source;
  source.loc = token.loc();
  do {
    advance(); // 'source' or ','
    StringRef name;
    if (failed(expectName("the name of a source", name)))
      return failure();
    source.names.push_back(name);
  } while (token.is(Kind::Comma));
  if (consumeIf(Kind::Colon)) {
    if (!token.isWord("axes"))
      return errorExpected("'axes = \"...\"'");
    advance();
    if (failed(expect(Kind::Assign, "'='")) || !(source.axes = parseExpression()))
      return failure();
  }
  file.sources.push_back(std::move(source));
  return success();
}

LogicalResult Parser::parseNames(std::vector<NamedLoc> &names, StringRef what) {
  do {
    SMLoc loc = token.loc();
    StringRef name;
    if (failed(expectName(what, name)))
      return failure();
    names.push_back({loc, name});
  } while (consumeIf(Kind::Comma));
  return success();
}

/// names -> step -> ... -> names. What follows the last arrow are the outputs. Arrows may begin a
/// line.
LogicalResult Parser::parseChain(ModelFile &file) {
  ChainDecl chain;
  chain.loc = token.loc();
  if (failed(parseNames(chain.inputs, "a source, a setting or a chain SOURCE -> ... -> INPUT")))
    return failure();
  if (!token.is(Kind::Arrow))
    return errorExpected("'->' or ',' of a chain SOURCE -> step(...) -> INPUT");
  while (consumeIf(Kind::Arrow)) {
    Token following = token.is(Kind::Identifier) ? peek() : token;
    bool isStep = following.is(Kind::LeftParen) || following.is(Kind::Arrow);
    if (!isStep) {
      if (failed(parseNames(chain.outputs, "a data step or an input of the model")))
        return failure();
      break;
    }
    ExprPtr step = parsePostfix();
    if (!step)
      return failure();
    chain.steps.push_back(std::move(step));
  }
  if (chain.outputs.empty())
    return errorExpected("'->' and the inputs of the model that this chain feeds");
  if (token.is(Kind::Arrow))
    return diags.error(token.loc(),
                       "a chain ends with the inputs of the model; only a step may stand "
                       "between two arrows");
  file.chains.push_back(std::move(chain));
  return success();
}

} // namespace dlc::fe
