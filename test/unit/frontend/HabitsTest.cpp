// What is written as in Python, C or torch gets a message that says what to write here.
#include "test/unit/frontend/TestModel.h"

using namespace dlc::fe;

/// Statements of a model, from line 4 on.
class HabitError : public testing::TestWithParam<Case> {};
TEST_P(HabitError, SaysWhatToWrite) { expectBodyError(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Signs, HabitError,
    testing::Values(
        Case{"  # note\n  y = image", "4:3", "a comment begins with '//'"},
        Case{"  /* note */\n  y = image", "4:3", "begins with '//' and ends with its line"},
        Case{"  n = 2 ^ 3\n  y = image * n", "4:9", "a power is x ** p"},
        Case{"  y = image\n  if true & training { y = relu(y) }", "5:11", "write '&&'"},
        Case{"  y = image\n  if true | training { y = relu(y) }", "5:11", "write '||'"},
        Case{"  y = image\n  if ~training { y = relu(y) }", "5:6", "of a bool write '!'"},
        Case{"  y = image\n  if size <> 8 { y = relu(y) }", "5:11", "write '!='"},
        Case{"  y = image * (size % 3)", "4:21", "write 'mod'"},
        Case{"  y = image @ image", "4:13", "dense(x, channels)"},
        Case{"  y = training ? image : mask", "4:16", "a choice is a if c else b"},
        Case{"  y = conv(image, 1, kernel = 1, name = 'c')", "4:41", "double quotes"},
        Case{"  y = conv(image, 1, kernel = 1, name = f\"c{size}\")", "4:41", "has no prefix"},
        Case{"  y = image \\\n    + image", "4:13", "inside of brackets only"},
        Case{"  i = 0\n  i++\n  y = image * i", "5:4", "write i += 1"},
        Case{"  y = image * .5", "4:15", "digits precede the point of a float: 0.5"},
        Case{"  y = image * 5.", "4:15", "digits follow the point of a float: 1.0"}));

INSTANTIATE_TEST_SUITE_P(
    Words, HabitError,
    testing::Values(
        Case{"  y = image\n  if not training { y = relu(y) }", "5:6", "got 'not'; write '!'"},
        Case{"  y = image\n  if not (size == 8) { y = relu(y) }", "5:6", "got 'not'; write '!'"},
        Case{"  y = image\n  if size == 8 and training { y = relu(y) }", "5:16", "write '&&'"},
        Case{"  y = image\n  if training or size == 8 { y = relu(y) }", "5:15", "write '||'"},
        Case{"  y = image\n  if size is 8 { y = relu(y) }", "5:11", "write '=='"},
        Case{"  y = image\n  if size in [8, 9] { y = relu(y) }", "5:11", "x == a || x == b"},
        Case{"  y = image\n  if size = 8 { y = relu(y) }", "5:11", "a comparison is '=='"},
        Case{"  y = image\n  if (size = 8) { y = relu(y) }", "5:12", "a comparison is '=='"},
        Case{"  y = image\n  require size = 8, \"size\"", "5:16", "a comparison is '=='"},
        Case{"  y = image\n  if true { y = relu(y) } elif false { y = mask }", "5:27",
             "write 'else if'"},
        Case{"  y = image\n  while size > 8 { y = relu(y) }", "5:9", "for i in 0..n"},
        Case{"  y = image\n  for i in range(3) { y = relu(y) }", "5:12", "; write 0..n"},
        Case{"  y = if training { image } else { mask }", "4:7", "a choice is a if c else b"},
        Case{"  y = image if training", "5:3", "expected 'else' and the other value"},
        Case{"  l = [i * 2 for i in 0..3]\n  y = image * l[0]", "4:14", "a list grows in a loop"},
        Case{"  f = lambda x: x\n  y = f(image)", "4:7", "functions have names"},
        Case{"  def f(x) { return x }\n  y = f(image)", "4:7", "; write 'fn'"},
        Case{"  print(size)\n  y = image", "4:8", "write print \"text {expr}\""},
        Case{"  a, b = [image, image]\n  y = a + b", "4:4", "in brackets: [a, b] = [1, 2]"},
        Case{"  [a, b] += [image, image]\n  y = a + b", "4:10", "the list to take apart"},
        Case{"  l = [1, 2]\n  l[0] = 3\n  y = image * l[0]", "5:4", "lists do not change"},
        Case{"  y = conv(image, 1, kernel = (3, 3))", "4:33", "a list stands in brackets: [a, b]"},
        Case{"  y = conv(image, size // 2, kernel = 1)", "5:3",
             "a quotient rounded down is 'a div b'"},
        Case{"  y = image * (size // 2)", "5:3", "a quotient rounded down is 'a div b'"},
        Case{"  y = conv(image, int(size / 3), kernel = 1)", "4:28", "write 'div'"},
        Case{"  y = conv(image, 1, kernel = 1, name = \"a\" + 3)", "4:45",
             "a string takes values in as \"{x}\""}));

INSTANTIATE_TEST_SUITE_P(
    Torch, HabitError,
    testing::Values(
        Case{"  y = nn.Conv2d(image, 3)", "4:7", "operators have no prefix"},
        Case{"  y = F.relu(image)", "4:7", "operators have no prefix: relu(x)"},
        Case{"  y = image.relu()", "4:12", "an operator is called: relu(x)"},
        Case{"  y = image.view(2, -1)", "4:12", "write reshape(x, [...])"},
        Case{"  y = ReLU(image)", "4:7", "did you mean 'relu'?"},
        Case{"  y = MaxPool2d(image, 2)", "4:7", "did you mean 'max_pool'?"},
        Case{"  y = BatchNorm2d(image)", "4:7", "did you mean 'batch_norm'?"},
        Case{"  y = Linear(image, 2)", "4:7", "write dense(x, channels)"},
        Case{"  y = conv(image, 1, kernel = 1, bias = None)", "4:41", "leave the argument out"},
        Case{"  y = conv(image, 1, kernel = 1, bias = True)", "4:41", "write 'true'"},
        Case{"  y = max_pool(image, kernel = 12, padding = 3)", "4:32",
             "kept in a byte), got 12; pool in steps"},
        Case{"  y = image\n  output = y", "5:3", "output NAME = value"},
        Case{"  y = image\n  metric mean(y)", "5:14", "expected '=' of 'metric NAME = value'"},
        Case{"  y = image\n  loss += mean(y)", "5:8", "loss = a + 0.4 * b"},
        Case{"  y = image\n  loss = mean(y)", "7:3",
             "a model has one, the sum of all: loss = a + 0.4 * b"},
        Case{"  y = image\n  metric m = loss * 2", "5:14", "'loss = ...' makes no value"}));

/// Whole texts.
class HabitFile : public testing::TestWithParam<Case> {};
TEST_P(HabitFile, SaysWhatToWrite) { expectError(GetParam().text, GetParam()); }

#define DLC_MODEL "model m() { input x : f32[2, 3]; loss = mean(dense(x, 1)) }\n"

INSTANTIATE_TEST_SUITE_P(
    Files, HabitFile,
    testing::Values(
        Case{"class Net { }", "test.dl:1:1", "a network is a 'model'"},
        Case{"from torch import nn", "test.dl:1:1", "import \"file.dl\""},
        Case{"model m() { input x : f32[2, 3]; output y = dense(x, 1) }", "test.dl:1:7",
             "has no loss in @train; add one, such as 'loss = softmax_cross_entropy(logits, "
             "label)'"},
        Case{"model m() { input x : f32[?, 3]; loss = mean(x) }", "test.dl:1:27",
             "an extent is an int known when compiling"},
        Case{"fn f(x) { return x, x }\nmodel m() { }", "test.dl:1:19", "return [a, b]"},
        Case{"fn f(x) { return f(x) }\nmodel m() { input x : f32[2]; loss = mean(f(x)) }",
             "test.dl:1:18", "An 'if' ends it, or 'for i in 0..n { x = f(x) }' repeats a call"},
        Case{DLC_MODEL "train { lr = 0.1 }", "test.dl:2:9", "optimizer = adam(lr = 1e-3)"},
        Case{DLC_MODEL "train { patience = 3 }", "test.dl:2:9", "early_stop(patience = 10)"},
        Case{DLC_MODEL "data { batch_size = 3 }", "test.dl:2:8", "model m(batch = 32)"},
        Case{DLC_MODEL "data { x = normalize(x) }", "test.dl:2:8",
             "chains SOURCE -> step(...) -> INPUT"},
        Case{DLC_MODEL "data { normalize(x) }", "test.dl:2:17", "SOURCE -> step(...) -> INPUT"}));

/// The notes tell of the outermost calls, so that a recursion shows where it began.
TEST(Habits, ARecursionShowsItsBeginning) {
  Elaborated result("fn f(x) { return f(x) }\nmodel m() { input x : f32[2]; loss = mean(f(x)) }");
  EXPECT_NE(result.diagnostics.find("test.dl:2:43: note: in this call of 'f', layer f.0\n"),
            std::string::npos)
      << result.diagnostics;
  EXPECT_LT(result.diagnostics.size(), 2000u);
}

/// A sum of losses may begin with the number 0, as a loop writes it.
TEST(Habits, ASumOfLossesBeginsWithZero) {
  Elaborated result("model m() {\n  input x : f32[2, 3]\n  y = dense(x, 1)\n  l = 0.0\n"
                    "  for w in [1.0, 0.4] { l += w * mse(y, w) }\n  loss = l\n}");
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(result.count<dlc::nn::LossOp>("train"), 2u);
}
