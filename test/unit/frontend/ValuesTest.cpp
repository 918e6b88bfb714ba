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

INSTANTIATE_TEST_SUITE_P(Powers, Holds,
                         testing::Values("2 ** 10 == 1024", "2 ** 3 ** 2 == 512", "-2 ** 2 == -4",
                                         "(-2) ** 3 == -8", "2 ** -1 == 0.5", "4 ** 0.5 == 2.0",
                                         "3 * 2 ** 2 == 12", "0 ** 0 == 1", "1.5 ** 2 == 2.25",
                                         "(-1) ** 9000000000000000001 == -1"));

INSTANTIATE_TEST_SUITE_P(Rounding, Holds,
                         testing::Values("int(2.9) == 2", "int(-2.9) == -2", "int(true) == 1",
                                         "round(2.5) == 2", "round(3.5) == 4", "round(-2.5) == -2",
                                         "round(2.6) == 3", "round(0.49999999999999994) == 0",
                                         "floor(-2.5) == -3", "floor(2.5) == 2", "floor(-3) == -3",
                                         "round(4503599627370497.0) == 4503599627370497",
                                         "[1, 2, 3][int(1.5)] == 2"));

INSTANTIATE_TEST_SUITE_P(
    Functions, Holds,
    testing::Values("silu(0) == 0.0", "abs(silu(2) - 1.76159415595) < 1e-9",
                    "abs(gelu(1) - 0.841344746) < 1e-9", "leaky_relu(-2) == -0.02",
                    "leaky_relu(-2, slope = 0.5) == -1.0", "leaky_relu(3) == 3.0", "elu(2) == 2.0",
                    "abs(elu(-1) + 0.63212055882) < 1e-9", "abs(softplus(0) - log(2)) < 1e-9",
                    "softplus(1000) == 1000.0", "hardswish(-3) == 0.0", "hardswish(4) == 4.0",
                    "hardswish(0.0) == 0.0", "abs(log10(1000) - 3) < 1e-12",
                    "where(true, 1, 2) == 1", "where(1 > 2, 1, 2.5) == 2.5", "clamp(5, 0, 3) == 3",
                    "clamp(-5, 0, 3) == 0", "clamp(2, 0, 3) == 2", "stop_gradient(3) == 3"));

INSTANTIATE_TEST_SUITE_P(Choices, Holds,
                         testing::Values("(1 if 2 > 1 else [1][5]) == 1",
                                         "([1][5] if 2 < 1 else 2) == 2",
                                         "(1 if false else 2 if false else 3) == 3",
                                         "len(0..3 if true else []) == 3",
                                         "(1 if true && !false else 0) + 1 == 2"));

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

TEST(Values, AssignmentsTakeListsApart) {
  Elaborated result(withBody("  [h, w] = image.spatial\n  [a, [b, c]] = [1, [2, 3]]\n"
                             "  [b, a] = [a, b]\n"
                             "  require h * w == 64 && a == 2 && b == 1 && c == 3, \"no\"\n"
                             "  [y, unused] = [image, 0]"));
  EXPECT_TRUE(result.module) << result.diagnostics;
}

/// Only the branch that is taken makes layers.
TEST(Values, ChoicesEvaluateOneBranch) {
  Elaborated result(withBody("  y = relu(image) if training else tanh(image)"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(result.count<dlc::nn::ReluOp>("train"), 1u);
  EXPECT_EQ(result.count<dlc::nn::TanhOp>("train"), 0u);
  EXPECT_EQ(result.count<dlc::nn::TanhOp>("predict"), 1u);
}

TEST(Values, FunctionsHideOperators) {
  std::string text = withBody("  y = relu(image)");
  Elaborated result("fn relu(x) { return tanh(x) }\n" + text);
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(result.count<dlc::nn::TanhOp>("predict"), 1u);
  EXPECT_EQ(result.count<dlc::nn::ReluOp>("predict"), 0u);
  EXPECT_EQ(llvm::StringRef(result.diagnostics).split('\n').first,
            "test.dl:1:4: remark: this function hides the operator 'relu'");
}

/// Once for each text and place, though a model has three programs.
TEST(Values, PrintIsARemark) {
  Elaborated result(withBody("  for i in 0..2 { print \"{i}: {image.shape}\" }\n  y = image\n"
                             "  print \"training {training}\""));
  ASSERT_TRUE(result.module) << result.diagnostics;
  std::vector<std::string> remarks;
  for (llvm::StringRef rest = result.diagnostics; !rest.empty();) {
    auto [line, tail] = rest.split('\n');
    if (line.starts_with("test.dl:"))
      remarks.push_back(line.str());
    rest = tail;
  }
  EXPECT_EQ(remarks, (std::vector<std::string>{"test.dl:4:19: remark: 0: [2, 1, 8, 8]",
                                               "test.dl:4:19: remark: 1: [2, 1, 8, 8]",
                                               "test.dl:6:3: remark: training true",
                                               "test.dl:6:3: remark: training false"}));
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
