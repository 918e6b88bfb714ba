// Recursive descent parser of the graph language, one per file; imports are parsed by the same
// class. Stops at the first error. Invariant: recursion is bounded by maxHeight whatever the input.
#pragma once

#include "frontend/syntax/AST.h"
#include "frontend/syntax/Diagnostics.h"
#include "frontend/syntax/Lexer.h"

#include <optional>

namespace dlc::fe {

class Parser {
public:
  /// `source` is text of a buffer of the diagnostics' SourceMgr.
  Parser(llvm::StringRef source, Diagnostics &diags);

  struct Import {
    llvm::SMLoc loc;
    std::string path;
  };

  /// Appends the file's definitions to `file` and its imports to `imports`. A second model or block
  /// of a kind is an error.
  llvm::LogicalResult parseFile(ModelFile &file, std::vector<Import> &imports);

  /// The whole source as one expression; null after an error.
  ExprPtr parseWholeExpression();

private:
  // Tokens.
  void advance() { token = lexer.next(); }
  bool consumeIf(Token::Kind kind);
  llvm::LogicalResult expect(Token::Kind kind, llvm::StringRef what);
  llvm::LogicalResult expectName(llvm::StringRef what, llvm::StringRef &name);
  llvm::LogicalResult expectEndOfStatement();
  llvm::LogicalResult errorExpected(llvm::StringRef what, llvm::StringRef hint = "");
  bool endsStatement() const;
  bool isPunctuation(Token::Kind kind) const;
  Token peek() const;

  // Files.
  llvm::LogicalResult parseTopLevel(ModelFile &file, std::vector<Import> &imports);
  llvm::LogicalResult parseImport(std::vector<Import> &imports);
  std::unique_ptr<Function> parseFunction(llvm::StringRef what);
  llvm::LogicalResult parseParameters(Function &function);
  llvm::LogicalResult parseDataBlock(ModelFile &file);
  llvm::LogicalResult parseSource(ModelFile &file);
  llvm::LogicalResult parseChain(ModelFile &file);
  llvm::LogicalResult parseNames(std::vector<NamedLoc> &names, llvm::StringRef what);
  llvm::LogicalResult parseEntry(std::vector<Entry> &entries);
  llvm::LogicalResult addEntry(std::vector<Entry> &entries, Entry entry);
  llvm::LogicalResult parseEntries(std::vector<Entry> &entries);

  // Statements.
  llvm::LogicalResult parseBlock(Block &block);
  std::unique_ptr<Stmt> parseStatement();
  std::unique_ptr<Stmt> parseAssign();
  std::string assignHint(llvm::StringRef name) const;
  std::unique_ptr<Stmt> parseFor();
  std::unique_ptr<Stmt> parseIf();
  std::unique_ptr<Stmt> parseRequire();
  std::unique_ptr<Stmt> parsePrint();
  std::unique_ptr<Stmt> parseReturn();
  std::unique_ptr<Stmt> parseInput();
  template <typename Sink> std::unique_ptr<Stmt> parseSink(bool named);
  llvm::LogicalResult parsePattern(Pattern &pattern, unsigned depth);

  // Expressions; null after an error.
  ExprPtr parseExpression();
  ExprPtr parseConditional(ExprPtr chosen);
  ExprPtr parseBinary(unsigned minPrecedence);
  ExprPtr parseUnary();
  ExprPtr parsePower();
  ExprPtr parsePostfix();
  ExprPtr parsePrimary();
  ExprPtr parseNumber();
  ExprPtr parseString();
  ExprPtr parseList();
  llvm::LogicalResult parseArguments(CallExpr &call);
  std::optional<BinaryOperator> binaryOperator() const;
  ExprPtr makeBinary(llvm::SMLoc loc, BinaryOperator op, ExprPtr left, ExprPtr right);
  /// Checks the height of a finished node.
  ExprPtr finish(ExprPtr expr, unsigned childHeight);

  Diagnostics &diags;
  Lexer lexer;
  Token token;
  unsigned openBrackets = 0; // ( and [: inside them newlines end nothing
  unsigned nesting = 0;      // of blocks and expressions being parsed
};

} // namespace dlc::fe
