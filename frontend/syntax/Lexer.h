// Splits graph language source into tokens. Newlines are no tokens: each token knows whether one
// precedes it, and the parser decides where that ends a statement. Any byte sequence is legal
// input.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SMLoc.h"

namespace dlc::fe {

struct Token {
  enum class Kind {
    EndOfFile,
    Error, // text is the offending part, `message` says why
    Identifier,
    Integer,
    Float,
    String, // text includes the quotes
    // Punctuation, in Lexer.cpp's order of spelling.
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    Comma,
    Semicolon,
    Colon,
    Dot,
    DotDot,
    Ellipsis,
    Arrow,
    Assign,
    PlusAssign,
    MinusAssign,
    StarAssign,
    SlashAssign,
    Plus,
    Minus,
    Star,
    StarStar,
    Slash,
    ShiftLeft,
    ShiftRight,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    Not,
    AndAnd,
    OrOr,
  };

  Kind kind = Kind::EndOfFile;
  llvm::StringRef text;
  bool afterNewline = false;
  bool afterComment = false; // at the end of the line before
  const char *message = nullptr;

  bool is(Kind k) const { return kind == k; }
  bool isWord(llvm::StringRef word) const { return kind == Kind::Identifier && text == word; }
  llvm::SMLoc loc() const { return llvm::SMLoc::getFromPointer(text.data()); }
};

/// "'text'" of a token, or what stands for it, for messages.
std::string describe(const Token &token);

class Lexer {
public:
  /// `source` is a memory buffer's text or a part of it: the byte after it must be readable.
  explicit Lexer(llvm::StringRef source) : rest(source) {}
  Token next();

private:
  void skipBlanks();
  Token take(Token::Kind kind, size_t length);
  Token error(size_t length, const char *message);
  Token number();
  Token string();
  Token punctuation();

  llvm::StringRef rest;
  bool sawNewline = false, sawComment = false;
};

} // namespace dlc::fe
