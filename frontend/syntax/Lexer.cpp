#include "frontend/syntax/Lexer.h"

#include "frontend/syntax/Habits.h"

#include "llvm/ADT/StringExtras.h"

#include <utility>

using namespace llvm;

namespace dlc::fe {

using Kind = Token::Kind;

// Longer spellings come before their prefixes.
static constexpr std::pair<StringLiteral, Kind> spellings[] = {
    {"...", Kind::Ellipsis},   {"..", Kind::DotDot},       {"->", Kind::Arrow},
    {"+=", Kind::PlusAssign},  {"-=", Kind::MinusAssign},  {"*=", Kind::StarAssign},
    {"/=", Kind::SlashAssign}, {"<<", Kind::ShiftLeft},    {">>", Kind::ShiftRight},
    {"<=", Kind::LessEqual},   {">=", Kind::GreaterEqual}, {"==", Kind::Equal},
    {"!=", Kind::NotEqual},    {"&&", Kind::AndAnd},       {"||", Kind::OrOr},
    {"**", Kind::StarStar},    {"(", Kind::LeftParen},     {")", Kind::RightParen},
    {"[", Kind::LeftBracket},  {"]", Kind::RightBracket},  {"{", Kind::LeftBrace},
    {"}", Kind::RightBrace},   {",", Kind::Comma},         {";", Kind::Semicolon},
    {":", Kind::Colon},        {".", Kind::Dot},           {"=", Kind::Assign},
    {"+", Kind::Plus},         {"-", Kind::Minus},         {"*", Kind::Star},
    {"/", Kind::Slash},        {"<", Kind::Less},          {">", Kind::Greater},
    {"!", Kind::Not},
};

std::string describe(const Token &token) {
  if (token.is(Kind::EndOfFile))
    return "the end of the text";
  if (token.is(Kind::String))
    return "a string";
  return ("'" + token.text.take_front(40) + "'").str();
}

static bool startsIdentifier(char c) { return isAlpha(c) || c == '_'; }

void Lexer::skipBlanks() {
  sawNewline = sawComment = false;
  while (!rest.empty()) {
    if (rest.starts_with("//")) {
      sawComment |= !sawNewline;
      rest = rest.drop_until([](char c) { return c == '\n'; });
      continue;
    }
    char c = rest.front();
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
      break;
    sawNewline |= c == '\n';
    rest = rest.drop_front();
  }
}

Token Lexer::take(Kind kind, size_t length) {
  Token token{kind, rest.take_front(length), sawNewline, sawComment, nullptr};
  rest = rest.drop_front(length);
  return token;
}

Token Lexer::error(size_t length, const char *message) {
  Token token = take(Kind::Error, length);
  token.message = message;
  return token;
}

Token Lexer::next() {
  skipBlanks();
  if (rest.empty())
    return take(Kind::EndOfFile, 0);
  char c = rest.front();
  if (StringRef("bfr").contains(c) && rest.drop_front().starts_with("\""))
    return error(1, "a string has no prefix; {expr} is replaced in every string");
  if (startsIdentifier(c))
    return take(Kind::Identifier,
                rest.take_while([](char c) { return startsIdentifier(c) || isDigit(c); }).size());
  if (isDigit(c))
    return number();
  if (c == '"')
    return string();
  return punctuation();
}

/// digits [. digits] [e [+-] digits]; in `0..n` the dots are a range's.
Token Lexer::number() {
  auto digitsFrom = [&](size_t begin) { return rest.drop_front(begin).take_while(isDigit).size(); };
  size_t length = digitsFrom(0);
  Kind kind = Kind::Integer;
  if (rest.drop_front(length).starts_with(".") && digitsFrom(length + 1) > 0) {
    length += 1 + digitsFrom(length + 1);
    kind = Kind::Float;
  } else if (rest.drop_front(length).starts_with(".") &&
             !rest.drop_front(length).starts_with("..")) {
    return error(length + 1, "digits follow the point of a float: 1.0");
  }
  StringRef tail = rest.drop_front(length);
  if (tail.starts_with_insensitive("e")) {
    size_t sign = tail.drop_front().starts_with("+") || tail.drop_front().starts_with("-");
    size_t digits = digitsFrom(length + 1 + sign);
    if (digits == 0)
      return error(length + 1, "a number's exponent needs digits");
    length += 1 + sign + digits;
    kind = Kind::Float;
  }
  if (length < rest.size() && startsIdentifier(rest[length]))
    return error(length + 1, "a number ends here, but a letter follows");
  return take(kind, length);
}

/// A string ends on its line; quotes inside braces would end it too.
Token Lexer::string() {
  for (size_t i = 1; i < rest.size() && rest[i] != '\n'; ++i) {
    if (rest[i] == '"')
      return take(Kind::String, i + 1);
    if (rest[i] == '\\' && i + 1 < rest.size() && rest[i + 1] != '\n')
      ++i;
  }
  return error(1, "this string has no closing '\"' on its line");
}

Token Lexer::punctuation() {
  if (rest.front() == '.' && rest.size() > 1 && isDigit(rest[1]))
    return error(1, "digits precede the point of a float: 0.5");
  const auto *own = find_if(spellings, [&](const auto &s) { return rest.starts_with(s.first); });
  size_t ownLength = own == std::end(spellings) ? 0 : own->first.size(), foreignLength = 0;
  // "/*" is foreign, but "||" is not.
  if (const char *message = foreignSign(rest, foreignLength); foreignLength > ownLength)
    return error(foreignLength, message);
  return ownLength > 0 ? take(own->second, ownLength)
                       : error(1, "this character has no meaning here");
}

} // namespace dlc::fe
