#include "frontend/syntax/Lexer.h"

#include "gtest/gtest.h"

#include <vector>

using namespace dlc::fe;
using Kind = Token::Kind;

static std::vector<Token> tokens(llvm::StringRef text) {
  Lexer lexer(text);
  std::vector<Token> result;
  do
    result.push_back(lexer.next());
  while (!result.back().is(Kind::EndOfFile) && !result.back().is(Kind::Error));
  return result;
}

TEST(Lexer, TellsRangesFromFloats) {
  auto list = tokens("0..4 1.5 2e-3 a.b x...");
  ASSERT_EQ(list.size(), 11u);
  EXPECT_TRUE(list[0].is(Kind::Integer));
  EXPECT_TRUE(list[1].is(Kind::DotDot));
  EXPECT_EQ(list[3].text, "1.5");
  EXPECT_TRUE(list[4].is(Kind::Float));
  EXPECT_TRUE(list[6].is(Kind::Dot));
  EXPECT_TRUE(list[9].is(Kind::Ellipsis));
}

TEST(Lexer, KnowsWhereLinesBegin) {
  auto list = tokens("a b // comment\nc");
  EXPECT_FALSE(list[1].afterNewline);
  EXPECT_TRUE(list[2].afterNewline);
  EXPECT_EQ(list[2].text, "c");
}

TEST(Lexer, PrefersLongerPunctuation) {
  auto list = tokens("a->b <<= += !=");
  EXPECT_TRUE(list[1].is(Kind::Arrow));
  EXPECT_TRUE(list[3].is(Kind::ShiftLeft));
  EXPECT_TRUE(list[4].is(Kind::Assign));
  EXPECT_TRUE(list[5].is(Kind::PlusAssign));
  EXPECT_TRUE(list[6].is(Kind::NotEqual));
}

TEST(Lexer, RefusesWhatHasNoMeaning) {
  for (llvm::StringRef text : {"\"open", "1e", "3abc", "@", "\x80", "\"a\nb\""})
    EXPECT_TRUE(tokens(text).back().is(Kind::Error)) << text.str();
}
