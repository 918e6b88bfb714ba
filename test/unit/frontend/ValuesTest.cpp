// Compile-time values, tested in the language: each line must hold.
#include "test/unit/frontend/TestModel.h"

#include "gtest/gtest.h"

using namespace dlc::fe;

class Holds : public testing::TestWithParam<const char *> {};

TEST_P(Holds, AtCompileTime) {
  Elaborated result(withBody(std::string("  require ") + GetParam() + ", \"false\"\n  y = image"));
  EXPECT_TRUE(result.module) << result.diagnostics;
  Elaborated negated(withBody(std::string("  require !(") + GetParam() + "), \"no\"\n  y = image"));
  EXPECT_FALSE(negated.module);
  EXPECT_NE(negated.diagnostics.find("test.dl:4:3: error: no"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Arithmetic, Holds,
                         testing::Values("1 + 2 * 3 == 7", "(1 + 2) * 3 == 9", "6 / 2 == 3",
                                         "7 div 2 == 3", "-7 div 2 == -4", "-7 mod 2 == 1",
                                         "7 mod -2 == -1", "1 << 3 + 1 == 16", "256 >> 4 == 16",
                                         "7 / 2.0 == 3.5", "1 + 0.5 == 1.5", "true + 1 == 2",
                                         "-2 - -3 == 1", "2 == 2.0", "abs(-3) == 3",
                                         "max(1, 3, 2) == 3", "min(2, 0.5) == 0.5",
                                         "sqrt(16.0) == 4.0", "exp(0) == 1.0",
                                         "sigmoid(0.0) == 0.5"));

INSTANTIATE_TEST_SUITE_P(Logic, Holds,
                         testing::Values("1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3", "1 != 2",
                                         "true || [1][5] == 0", "!(false && [1][5] == 0)",
                                         "1 < 2 == true", "\"abc\" < \"abd\"",
                                         "!training || training"));

INSTANTIATE_TEST_SUITE_P(Lists, Holds,
                         testing::Values("[1, 2] + [3] == [1, 2, 3]", "[1, [2, 3]][1][0] == 2",
                                         "[1, 2, 3][-1] == 3", "(0..3) == [0, 1, 2]",
                                         "(2..2) == []", "len(0..5) == 5",
                                         "reversed(0..3) == [2, 1, 0]",
                                         "enumerate([7, 8]) == [[0, 7], [1, 8]]", "[1] != [\"1\"]",
                                         "image.shape == [2, 1, 8, 8]", "image.channels == 1",
                                         "image.spatial == [8, 8]"));

INSTANTIATE_TEST_SUITE_P(Strings, Holds,
                         testing::Values("\"a{1 + 1}b\" == \"a2b\"",
                                         "\"{[1, 2.5]}\" == \"[1, 2.5]\"",
                                         "\"\\{\\}\\\"\" == \"\\{\" + \"\\}\" + \"\\\"\"",
                                         "len(\"abc\") == 3", "same == \"same\"",
                                         "\"{0.1}\" == \"0.1\"", "\"{1e-3}\" == \"0.001\""));

TEST(Values, LoopsTakeListsApart) {
  Elaborated result(withBody("  total = 0\n"
                             "  for [width, [low, high]] in [[1, [2, 3]], [4, [5, 6]]] {\n"
                             "    total += width * (low + high)\n"
                             "  }\n"
                             "  require total == 49, \"{total}\"\n"
                             "  y = image"));
  EXPECT_TRUE(result.module) << result.diagnostics;
}

TEST(Values, FunctionsArePassed) {
  Elaborated result("fn twice(f, x) { return f(f(x)) }\nfn half(x) { return x / 2 }\n" +
                    withBody("  require twice(half, 12) == 3, \"no\"\n  y = twice(relu, image)"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(result.count<dlc::nn::ReluOp>("train"), 2u);
}

TEST(Values, FunctionsHaveTheirOwnScope) {
  Elaborated result("fn f(x) { z = x + 1; return z }\n" +
                    withBody("  z = 5\n  require f(1) + z == 7, \"no\"\n  y = image"));
  EXPECT_TRUE(result.module) << result.diagnostics;
}

TEST(Values, StatementsContinueInsideBracketsAndAfterOperators) {
  Elaborated result(withBody("  y = relu(\n    image\n  ) +\n    1.0"));
  EXPECT_TRUE(result.module) << result.diagnostics;
}
