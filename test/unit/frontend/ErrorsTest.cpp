// Every error of the language: where it points and what it says. The line is counted in the whole
// text.
#include "test/unit/frontend/TestModel.h"

#include "gtest/gtest.h"

using namespace dlc::fe;

/// Statements of a model, from line 4 on.
class BodyError : public testing::TestWithParam<Case> {};
TEST_P(BodyError, IsReported) { expectBodyError(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Syntax, BodyError,
    testing::Values(
        Case{"  y = ", "5:10", "expected the end of the statement"},
        Case{"  y = (1 + 2", "5:3", "expected ')'"},
        Case{"  y = [1, 2", "5:3", "expected ',' or ']'"},
        Case{"  y = image)", "4:12", "expected the end of the statement"},
        Case{"  y image", "4:5", "expected '=' after 'y'"},
        Case{"  3 = y", "4:3", "expected a statement"}, Case{"  for = 1", "4:7", "expected a name"},
        Case{"  for x of y {}", "4:9", "expected 'in'"}, Case{"  y = \"open", "4:7", "no closing"},
        Case{"  y = \"{1\"", "4:8", "'{' without '}'"},
        Case{"  y = \"a}\"", "4:9", "'}' without '{'"},
        Case{"  y = \"\\q\"", "4:8", "unknown escape"},
        Case{"  y = 12345678901234567890", "4:7", "too large for an int"},
        Case{"  y = 1e999", "4:7", "too large for a float"},
        Case{"  y = 3x", "4:7", "a letter follows"}, Case{"  y = image $", "4:13", "no meaning"},
        Case{"  y = relu(x = image, x = image)", "4:23", "given twice"},
        Case{"  y = conv(kernel = 1, image)", "4:24", "without a name follows"},
        Case{"  fn f(x) { return x }", "4:3", "top of a file"},
        Case{"  if = 3", "4:6", "expected a value"},
        Case{"  return", "5:3", "expected the value to return"},
        Case{"  require true", "5:3", "expected ',' and the text"},
        Case{"  [a, b = image.spatial\n  y = image * a * b", "4:9", "expected ',' or ']'"},
        Case{"  y = image * (1 if true)", "4:25", "expected 'else' and the other value"},
        Case{"  print \"{\"\n  y = image", "4:10", "'{' without '}'"},
        Case{"  y = image * 2 **", "5:10", "expected the end of the statement"}));

INSTANTIATE_TEST_SUITE_P(
    Values, BodyError,
    testing::Values(
        Case{"  y = imge", "4:7", "unknown name 'imge'; did you mean 'image'?"},
        Case{"  y = conv(image, 1, kernel = 3 / 2)", "4:33", "3 / 2 is no int"},
        Case{"  y = image * (1 div 0)", "4:18", "by zero"},
        Case{"  y = image * (1.0 / 0)", "4:20", "division by zero"},
        Case{"  y = image * (1 << 63)", "4:18", "0 to 62"},
        Case{"  y = image * (9223372036854775807 + 1)", "4:36", "too large for an int"},
        Case{"  y = image * (1e300 * 1e300)", "4:22", "too large for a float"},
        Case{"  y = image * 1e300", "4:13", "too large for a tensor"},
        Case{"  y = image + \"a\"", "4:13",
             "does not apply to a tensor f32[2, 1, 8, 8] and the string"},
        Case{"  y = image[0]", "4:12", "only lists are indexed"},
        Case{"  y = image * [1, 2][2]", "4:22", "index 2 of a list of 2 values"},
        Case{"  y = image * [1][\"a\"]", "4:19", "an index is an int"},
        Case{"  y = image.shap", "4:12", "did you mean 'shape'?"},
        Case{"  y = image * [1].shape", "4:18", "only tensors have"},
        Case{"  y = sum(image).spatial", "4:17", "needs a tensor [N, C, spatial...]"},
        Case{"  y = image * -\"a\"", "4:15", "does not apply"},
        Case{"  y = !image", "4:7", "does not apply"},
        Case{"  y = image && image", "4:13", "does not apply"},
        Case{"  if image { y = image }", "4:6", "known at compile time"},
        Case{"  for i in 3 { y = image * i }", "4:12", "expects a list or a range"},
        Case{"  for [a, b] in [[1, 2, 3]] { y = image * a * b }", "4:7",
             "takes a list of 2 values apart"},
        Case{"  for i in 0..100000000 { y = image * i }", "4:13", "a range of more than"},
        Case{"  x = 0\n  for i in 0..1000000 { for j in 0..1000000 { x += i * j } }\n  y = image * "
             "x",
             "5:56", "takes more than"},
        Case{"  s = \"aaaaaaaa\"\n  for i in 0..40 { s = \"{s}{s}\" }\n  y = image * len(s)",
             "5:24", "a string of more than"},
        Case{"  l = [1]\n  for i in 0..100 { l = [l] }\n  y = image * len(l)", "5:25", "levels"},
        Case{"  l = [1]\n  for i in 0..100 { l += l }\n  y = image * len(l)", "5:23",
             "a list of more than"},
        Case{"  [a, b, c] = image.spatial\n  y = image * a * b * c", "4:3",
             "takes a list of 3 values apart, got a list of 2 values"},
        Case{"  [a, b] = 3\n  y = image * a * b", "4:3", "apart, got the int 3"},
        Case{"  y = image if image > 0.5 else mask", "4:22", "known at compile time"},
        Case{"  y = image if 1 else mask", "4:16", "'if' expects a bool"},
        Case{"  print \"{image}\"\n  y = image", "4:11", "known at compile time"},
        Case{"  y = image * 10 ** 19", "4:18", "too large for an int"},
        Case{"  y = image * 0 ** -1", "4:17", "0.0 ** -1.0 is no finite number"},
        Case{"  y = image * (-8) ** 0.5", "4:20", "no finite number"},
        Case{"  y = image ** mask", "4:13", "write exp(p * log(x)) for a positive x"},
        Case{"  y = 2 ** image", "4:9", "write exp(x * log(2))"},
        Case{"  y = image ** 1e99", "4:13", "too large for a tensor"},
        Case{"  y = image ** \"a\"", "4:13", "does not apply"},
        Case{"  require 1, \"m\"\n  y = image", "4:11", "expects a bool"},
        Case{"  require true, 3\n  y = image", "4:17", "is a string"},
        Case{"  require size mod 16 == 0, \"size {size} is not divisible by 16\"\n  y = image",
             "4:3", "size 8 is not divisible by 16"},
        Case{"  y = \"{image}\"", "4:9", "known at compile time"},
        Case{"  y = relu(image)\n  y = size(image)", "4:3", "the value of 'y' is never used"},
        Case{"  x = size(image)\n  y = x", "4:7", "only functions and operators can be called"}));

INSTANTIATE_TEST_SUITE_P(
    Unused, BodyError,
    testing::Values(
        Case{"  y = relu(image)\n  z = relu(y)", "5:3", "the value of 'z' is never used"},
        Case{"  y = relu(image)\n  y = relu(image)", "4:3", "the value of 'y' is never used"},
        Case{"  n = 0\n  for i in 0..3 { n = i }\n  y = image", "4:3",
             "the value of 'n' is never used"},
        Case{"  y = image\n  if training { z = relu(y) }", "5:17", "never used"},
        Case{"  x = conv(image, 1, kernel = 1)\n  s = x.shape\n  y = image * s[0]", "4:7",
             "parameter 'conv.0.weight' influences no loss, metric or output"},
        Case{"  [a, b] = [1, 2]\n  y = image", "4:3", "the value of 'a' is never used"},
        Case{"  input other : f32[batch]\n  y = image", "4:3",
             "the value of 'other' is never used"}));

INSTANTIATE_TEST_SUITE_P(
    Operators, BodyError,
    testing::Values(
        Case{"  y = cnv(image, 1, kernel = 1)", "4:7", "did you mean 'conv'?"},
        Case{"  y = conv(image, 1, kernal = 3)", "4:22", "did you mean 'kernel'?"},
        Case{"  y = conv(image, 1)", "4:7", "conv needs its argument 'kernel'"},
        Case{"  y = relu(image, image)", "4:19", "relu takes 1 argument, got more"},
        Case{"  y = conv(image, 1, 3, kernel = 3)", "4:25", "given twice"},
        Case{"  y = conv(image, 1.5, kernel = 3)", "4:19", "expects an int, got the float 1.5"},
        Case{"  y = conv(image, 0, kernel = 3)", "4:19", "from 1 to"},
        Case{"  y = conv(image, 1, kernel = [3, 3, 3])", "4:31", "2 ints, one per spatial axis"},
        Case{"  y = conv(image, 1, kernel = 9)", "4:7",
             "window of 9 is larger than its padded input of 8"},
        Case{"  y = conv(image, 1, kernel = 3, padding = valit)", "4:44", "did you mean 'valid'?"},
        Case{"  y = conv(image, 1, kernel = 3, padding = dataset)", "4:44", "or valid or same"},
        Case{"  y = conv(image, 4, kernel = 3, groups = 3)", "4:43", "groups must divide"},
        Case{"  y = conv(image, 1, kernel = 3, init = -1.0)", "4:41", "expects a number from"},
        Case{"  y = conv(flatten(image), 1, kernel = 3)", "4:12", "one to three spatial axes"},
        Case{"  y = conv_transpose(image, 1, kernel = 2, stride = 2, output_padding = 2)", "4:73",
             "smaller than the stride"},
        Case{"  y = conv_transpose(image, 1, kernel = 2, padding = 5)", "4:54", "leaves nothing"},
        Case{"  y = dense(image, 3)", "4:13", "flatten makes one"},
        Case{"  y = max_pool(image, kernel = 12, padding = 6)", "4:32", "at most 127 elements"},
        Case{"  y = max_pool(image, kernel = 2, padding = 2)", "4:45", "smaller than the window"},
        Case{"  y = avg_pool(image, kernel = 2, padding = 2)", "4:45", "smaller than the window"},
        Case{"  y = upsample(image, 0)", "4:23", "expects 1 to 65536"},
        Case{"  y = upsample(image, 2, mode = same)", "4:33", "nearest or linear"},
        Case{"  y = upsample(upsample(image, 65536), 65536)", "4:7", "of more than 2^40 elements"},
        Case{"  y = slice(image, axis = 2, from = 5, to = 3)", "4:37",
             "[5, 3) of axis 2 of f32[2, 1, 8, 8]; expected 0 <= from < to <= 8"},
        Case{"  y = slice(image, axis = 2, from = -9)", "4:37", "[-1, 8) of axis 2"},
        Case{"  y = slice(image, axis = 2, from = 0, step = 0)", "4:47", "from 1 to"},
        Case{"  y = slice(image, axis = 4, from = 0)", "4:27", "axis 4 of a tensor with 4 axes"},
        Case{"  y = transpose(image, [0, 1, 2, 2])", "4:24", "each axis of f32[2, 1, 8, 8] once"},
        Case{"  y = broadcast(image, [2, 3, 8])", "4:24", "reshape adds axes of size 1"},
        Case{"  y = broadcast(image, [2, 3, 8, 9])", "4:24", "which does not give [2, 3, 8, 9]"},
        Case{"  y = pad(image, 1)", "4:18", "such as [[1, 1], [0, 2]], got 1"},
        Case{"  y = pad(image, [[1, 1]])", "4:18", "each of the 2 spatial axes"},
        Case{"  y = pad(image, [[1, 1], [-1, 0]])", "4:18", "ints from 0 on"},
        Case{"  y = pad(image, [[1, 8], [0, 0]], mode = reflect)", "4:18",
             "less than the image's extent, 8"},
        Case{"  y = pixel_shuffle(image, 2)", "4:28", "which 1 channels of f32[2, 1, 8, 8]"},
        Case{"  y = adaptive_avg_pool(image, [1, 2, 3])", "4:32", "2 ints, one per spatial axis"},
        Case{"  y = resize(image, 0)", "4:21", "expects 1 to 65536"},
        Case{"  y = blur_pool(flatten(image))", "4:17", "one to three spatial axes"},
        Case{"  y = batch_norm(sum(image))", "4:18", "expects a tensor [N, C, spatial...]"},
        Case{"  y = dropout(image, 1.0)", "4:22", "from 0.0 to below 1.0, got 1.0"},
        Case{"  y = dropout(sum(image, axes = 0), 0.5)", "4:15", "first axis is the batch"},
        Case{"  y = dropout(dropout(image, name = \"d\"), name = \"d\")", "4:7",
             "a second dropout named 'd'"},
        Case{"  y = group_norm(sum(image), 1)", "4:18", "expects a tensor [N, C, spatial...]"},
        Case{"  y = group_norm(conv(image, 4, kernel = 1), 3)", "4:46",
             "groups must divide the channels, 4, got 3"},
        Case{"  y = group_norm(image, 0)", "4:25", "groups must divide the channels, 1, got 0"},
        Case{"  y = group_norm(image)", "4:7", "group_norm needs its argument 'groups'"},
        Case{"  y = instance_norm(flatten(image))", "4:21", "one to three spatial axes"},
        Case{"  y = instance_norm(mean(image, axes = [2, 3], keep = true))", "4:21",
             "needs more than one value to take a mean of"},
        Case{"  y = layer_norm(image, eps = 0)", "4:31", "expects a number from"},
        Case{"  y = layer_norm(mean(image))", "4:18", "expects a tensor [N, C, spatial...]"},
        Case{"  y = image * uniform([8, 8])", "4:23", "whose first axis is the batch"},
        Case{"  y = image + sum(normal([0]))", "4:26", "extents from 1 on, got [0]"},
        Case{"  y = image + uniform(image.shape, low = 2, high = 1)", "4:52",
             "low <= high, got 2 and 1"},
        Case{"  y = image + normal(image.shape, std = -1)", "4:41", "expects a number from"},
        Case{"  y = image * bernoulli(image.shape, 1.5)", "4:38", "from 0 to 1, got 1.5"},
        Case{"  y = image * bernoulli(image.shape, 0.5, name = \"d\") * dropout(image, 0.5, name = "
             "\"d\")",
             "4:57", "a second dropout named 'd'"},
        Case{"  y = image * parameter([1, 0])", "4:25", "extents from 1 on"},
        Case{"  y = image * parameter([1], init = he_normal)", "4:37",
             "needs a shape [out, in, ...]"},
        Case{"  y = image * parameter([1], init = 1e39)", "4:37", "too large for a tensor of f32"},
        Case{"  y = image * parameter([1], name = \"seed\")", "4:15", "is a number of the run"},
        Case{"  y = conv(image, 1, kernel = 1, reuse = true)", "4:34", "'reuse' needs the name"},
        Case{"  y = conv(image, 1, kernel = 1, name = \"\", reuse = true)", "4:45",
             "'reuse' needs the name"},
        Case{"  y = conv(image, 1, kernel = 1, name = \"a\", reuse = 1)", "4:54",
             "'reuse' is true or false, got the int 1"},
        Case{"  y = conv(image, 1, kernel = 1, name = \"a\", reuse = true)", "4:7",
             "there is no 'a.weight' yet that this call could reuse; the first call of a name goes "
             "without reuse"},
        Case{"  y = conv(image, 1, kernel = 1, name = \"a\")\n"
             "  y = conv(y, 1, kernel = 3, padding = 1, name = \"a\", reuse = true)",
             "5:7",
             "it has shape f32[1, 1, 1, 1], but this call needs f32[1, 1, 3, 3]; let both calls "
             "have operands and arguments (channels, kernel, ...) of which equal shapes follow, or "
             "give this one parameters of its own: another name, without reuse"},
        Case{"  y = conv(image, 1, kernel = 1, name = \"a\")\n"
             "  y = conv(y, 1, kernel = 1, name = \"a\", reuse = true, trainable = false)",
             "5:7", "it is trained"},
        Case{"  y = conv(image, 1, kernel = 1, name = \"a\", name = \"b\")", "4:46",
             "argument 'name' is given twice"},
        Case{"  y = concat(image, flatten(mask))", "4:14", "f32[2, 1, 8, 8] and f32[2, 64]"},
        Case{"  y = concat(image, image, axis = 4)", "4:35", "axis 4 of a tensor with 4 axes"},
        Case{"  y = reshape(image, [3, -1])", "4:22", "keeps the number of elements"},
        Case{"  y = reshape(image, [-1, -1])", "4:22", "one may be -1"},
        Case{"  y = sum(image, axes = [1, 1])", "4:25", "named twice"},
        Case{"  y = image + flatten(image)", "4:13",
             "equal shapes (axes of size 1 repeat), got f32[2, 1, 8, 8] and f32[2, 64]"},
        Case{"  y = image * accuracy(flatten(image), image)", "4:40",
             "expects a label i32[2] beside logits"},
        Case{"  y = image * softmax_cross_entropy(flatten(image), image)", "4:53",
             "expects a label i32[2] or shares of the classes f32[2, 64] beside logits"},
        Case{"  input l : i32[2]\n  y = image * softmax_cross_entropy(flatten(image), l, weights = "
             "[1])",
             "5:66", "a weight for each of the 64 classes, 0 or more and not all 0, got [1]"},
        Case{"  input l : i32[2]\n  y = image * softmax_cross_entropy(l, l)", "5:37",
             "expects logits [N, classes, ...], got a tensor i32[2]"},
        Case{"  l = flatten(image)\n  y = image * softmax_cross_entropy(l, l, weights = [-1])",
             "5:53", "0 or more"},
        Case{"  l = flatten(image)\n  y = image * softmax_cross_entropy(l, l, ignore = 1)", "5:52",
             "no class to ignore beside shares"},
        Case{"  y = image * mse(image, mask, where = flatten(mask))", "4:40",
             "'where' is a mask of that shape (axes of size 1 repeat), got a tensor f32[2, 64]"},
        Case{"  y = image * bce_with_logits(image, mask, pos_weight = -1)", "4:57",
             "expects a number from 0.0"},
        Case{"  y = image * focal_with_logits(image, mask, alpha = 1.5)", "4:54",
             "alpha from 0 to 1, or -1 for none, got 1.5"},
        Case{"  y = image * focal_with_logits(image, 1.5)", "4:40", "expects targets in [0, 1]"},
        Case{"  y = image * huber(image, mask, delta = 0)", "4:42", "a delta above 0, got 0"},
        Case{"  y = image * dice_loss(flatten(image), 1)", "4:25", "one to three spatial axes"},
        Case{"  y = image * mean(mask) * dice(image, mask)", "4:33",
             "or i32 tensors with classes = K, got a tensor f32"},
        Case{"  y = image * iou(mask > 0, mask > 0, classes = 3)", "4:24",
             "expects i32 tensors beside 'classes', got a tensor bool"},
        Case{"  y = image * psnr(image, mask, range = 0)", "4:41", "a range above 0, got 0"},
        Case{"  y = image * iou(mask > 0, mask > 0)", "4:13",
             "with numbers and other metrics alone"},
        Case{"  y = softmax(sum(image))", "4:15", "[N, C, ...]"},
        Case{"  y = log(-1.0) * image", "4:11", "no finite number"},
        Case{"  y = log_softmax(sum(image))", "4:19", "log_softmax expects a tensor [N, C, ...]"},
        Case{"  y = log10(0) * image", "4:13", "log10 of 0 is no finite number"},
        Case{"  y = where(image, 1, mask)", "4:13", "a comparison such as 'x > 0.0', got a tensor"},
        Case{"  y = where(image > 0.5, 1, flatten(mask))", "4:19", "needs equal shapes"},
        Case{"  y = where(image > 0.5, 1e99, mask)", "4:26", "too large for a tensor"},
        Case{"  y = where(flatten(image) > 0.5, image, mask)", "4:28", "needs equal shapes"},
        Case{"  y = clamp(image, 1, 0)", "4:23", "clamp expects low <= high, got 1 and 0"},
        Case{"  y = clamp(image, mask, 1)", "4:20", "expects a number, got a tensor"},
        Case{"  y = leaky_relu(image, slope = 1e99)", "4:33", "too large"},
        Case{"  y = image * var(sum(image, axes = 1), axes = 0, correction = 2)", "4:19",
             "var of 2 elements with correction = 2"},
        Case{"  y = image * var(image, correction = -1)", "4:39", "an int from 0"},
        Case{"  y = image * amax(image, axes = 4)", "4:34", "axis 4 of a tensor with 4 axes"},
        Case{"  y = image * argmax(image)", "4:15", "argmax needs its argument 'axis'"},
        Case{"  y = image * argmax(image, axis = [1, 2])", "4:36", "expects an int"},
        Case{"  y = image * int(image)", "4:19", "expects a number or true or false, got a tensor"},
        Case{"  y = image * round(1e300)", "4:21", "too large for an int"},
        Case{"  y = image * floor(\"2\")", "4:21", "expects a number"},
        Case{"  y = conv(conv(image, 1, kernel = 1, name = \"a\"), 1, kernel = 1, name = \"a\")",
             "4:7", "a second variable named 'a.weight'"},
        Case{"  y = conv(image, 1, kernel = 1, name = \"a b\")", "4:41", "a name consists of"},
        Case{"  y = conv(image, 1, kernel = 1, name = \"a..b\")", "4:41", "a name consists of"},
        Case{"  y = reshape(concat(image, image, axis = 0), image.shape)", "4:52",
             "keeps the number"},
        Case{"  y = max(image, \"a\")", "4:11", "expects numbers and tensors"},
        Case{"  y = image * len(3)", "4:19", "expects a list or a string"}));

INSTANTIATE_TEST_SUITE_P(
    Results, BodyError,
    testing::Values(
        Case{"  y = image\n  loss = mse(y, mask)", "7:3", "a second loss"},
        Case{"  y = image\n  metric p = y", "5:14", "or a function of means, got a tensor"},
        Case{"  y = image\n  metric p = mean(y) * (3e38 * mean(y)) * 1e39", "5:41", "too large"},
        Case{"  y = image\n  metric loss = mean(y)", "5:3", "a metric needs another"},
        Case{"  y = image\n  metric step = mean(y)", "5:3", "something else in a run's log"},
        Case{"  y = image\n  metric val_a = mean(y)", "5:3", "something else in a run's log"},
        Case{"  y = image\n  metric a = mean(y)\n  metric a = mean(y)", "6:3",
             "a second metric named 'a'"},
        Case{"  y = image\n  output q = sum(y)", "5:14", "first axis of an output is the batch"},
        Case{"  y = image\n  output q = mean(y)", "5:14", "an output is a tensor"},
        Case{"  input image : f32[batch]\n  y = image * mean(image)", "2:3", "never used"},
        Case{"  input n : f32[batch + 1]\n  y = image * mean(n)", "4:13",
             "first axis of every input"},
        Case{"  input n : f23[batch]\n  y = image * mean(n)", "4:13", "did you mean 'f32'?"},
        Case{"  input n : f32[batch, 0]\n  y = image * mean(n)", "4:24", "a positive int"},
        Case{"  input n : f32[batch, size...]\n  y = image * mean(n)", "4:24", "splices a list"},
        Case{"  input n : f32[batch, 1 << 40]\n  y = image * mean(n)", "4:13", "2^40 elements"},
        Case{"  y = image\n  return 3", "5:3", "a model returns nothing"}));

/// Whole texts.
class TextError : public testing::TestWithParam<Case> {};
TEST_P(TextError, IsReported) { expectError(GetParam().text, GetParam()); }

#define DLC_MODEL                                                                                  \
  "model m(batch = 2) { input x : f32[batch, 3]; y = dense(x, 1); loss = mean(y)\n"                \
  "  metric size = mean(y); output out = y }\n"

#define DLC_IMAGES                                                                                 \
  "model m(batch = 2) { input x : f32[batch, 1, 4, 4]; loss = mean(conv(x, 1, kernel = 1)) }\n"

INSTANTIATE_TEST_SUITE_P(
    Files, TextError,
    testing::Values(
        Case{"", "test.dl:1:1", "no model"}, Case{"\x01\xff", "test.dl:1:1", "no meaning"},
        Case{"modle m() {}", "test.dl:1:1", "expected 'import', 'fn', 'model'"},
        Case{"model m(a) {}", "test.dl:1:9", "needs a default"},
        Case{"model m(a = 1, a = 2) {}", "test.dl:1:16", "a second parameter"},
        Case{"model m(a = 1) { }", "test.dl:1:9", "the value of 'a' is never used"},
        Case{"model m(a = [relu]) { require len(a) == 1, \"\" }", "test.dl:1:9", "a list of these"},
        Case{"model m() { }", "test.dl:1:7", "has no loss"},
        Case{"model m() { }\nmodel n() { }", "test.dl:2:1", "a second model"},
        Case{"train { epochs = 1 }\ntrain { epochs = 1 }", "test.dl:2:1", "a second 'train' block"},
        Case{"fn f() { return 1 }\nfn f() { return 1 }\nmodel m() { }", "test.dl:2:4",
             "a second function"},
        Case{"fn f(name) { return name }\nmodel m() { }", "test.dl:1:6", "every call has a 'name'"},
        Case{"fn f(reuse) { return reuse }\nmodel m() { }", "test.dl:1:6",
             "every call has a 'reuse'"},
        Case{"import \"no.dl\"\n" DLC_MODEL, "test.dl:1:8", "cannot read 'no.dl'"},
        Case{"import \"{a}\"\n" DLC_MODEL, "test.dl:1:8", "is fixed"},
        Case{"model m() { input x : f32[2]; loss = accuracy(reshape(x, [2, 1]), x) }",
             "test.dl:1:67", "expects a label"},
        Case{"model m() { input x : f32[2, 2]; input l : i32[2]; loss = accuracy(x, l) }",
             "test.dl:1:59", "has no gradient"},
        Case{
            "model m() { input x : f32[2, 2]; input l : i32[2]\n loss = mean(x) + accuracy(x, l) }",
            "test.dl:2:17", "has no gradient"},
        Case{"model m() { input x : f32[2, 2]; loss = sum(x) }", "test.dl:1:41",
             "weighted sum of means"},
        Case{"model m() { input x : f32[2, 2]; loss = exp(mean(x)) }", "test.dl:1:41",
             "weighted sum"}));

INSTANTIATE_TEST_SUITE_P(
    Functions, TextError,
    testing::Values(
        Case{"fn f(x) { return g(x) }\nmodel m() { input x : f32[2]; loss = mean(f(x)) }",
             "test.dl:1:18", "unknown name 'g'"},
        Case{"fn f(x) { return f(x) }\nmodel m() { input x : f32[2]; loss = mean(f(x)) }",
             "test.dl:1:18", "does a function call itself"},
        Case{"fn f(x) { y = x }\nmodel m() { input x : f32[2]; loss = mean(f(x)) }", "test.dl:1:11",
             "never used"},
        Case{"fn f(x) { if training { return x } }\nmodel m() { input x : f32[2]; loss = "
             "mean(f(x)) }",
             "test.dl:2:43", "ended without 'return'"},
        Case{"fn f(x) { return x }\nmodel m() { input x : f32[2]; loss = mean(f(x, 1)) }",
             "test.dl:2:48", "takes 1 arguments, got more"},
        Case{"fn f(x) { return x }\nmodel m() { input x : f32[2]; loss = mean(f(x, width = 1)) }",
             "test.dl:2:48", "no parameter 'width'"},
        Case{"fn f(x) { return x }\nmodel m() { input x : f32[2]; loss = mean(f(x, x = 1)) }",
             "test.dl:2:48", "given twice"},
        Case{"fn f(x, n) { return x * n }\nmodel m() { input x : f32[2]; loss = mean(f(x)) }",
             "test.dl:2:43", "needs its argument 'n'"},
        Case{"fn f(x) { loss = mean(x); return x }\nmodel m() { input x : f32[2]; loss = "
             "mean(f(x)) }",
             "test.dl:1:11", "belong to the model"}));

INSTANTIATE_TEST_SUITE_P(
    Blocks, TextError,
    testing::Values(
        Case{DLC_MODEL "train { epoch = 3 }", "test.dl:3:9", "did you mean 'epochs'?"},
        Case{DLC_MODEL "train { epochs = 0 }", "test.dl:3:18", "from 1 to"},
        Case{DLC_MODEL "train { epochs = 1; epochs = 2 }", "test.dl:3:21", "set twice"},
        Case{DLC_MODEL "train { optimizer = adm() }", "test.dl:3:21", "did you mean 'adam'?"},
        Case{DLC_MODEL "train { optimizer = 3 }", "test.dl:3:21",
             "'sgd', 'adam', 'adamw', 'rmsprop'"},
        Case{DLC_MODEL "train { optimizer = adam(lr = \"a\") }", "test.dl:3:31",
             "expects a number"},
        Case{DLC_MODEL "train { optimizer = adam(lr = -1.0) }", "test.dl:3:31", "cannot be -1.0"},
        Case{DLC_MODEL "train { optimizer = adam(momentum = 1) }", "test.dl:3:26",
             "no argument 'momentum'"},
        Case{DLC_MODEL "train { schedule = [warm_up(), cosin()] }", "test.dl:3:32",
             "did you mean 'cosine'?"},
        Case{DLC_MODEL "train { monitor = siz }", "test.dl:3:19", "did you mean 'size'?"},
        Case{DLC_MODEL "train { monitor = size }", "test.dl:3:19",
             "whether a higher or a lower 'size' is better is not known; write monitor = max(size) "
             "or monitor = min(size)"},
        Case{DLC_MODEL "train { monitor = max(siz) }", "test.dl:3:23", "did you mean 'size'?"},
        Case{DLC_MODEL "train { monitor = maximum(size) }", "test.dl:3:19",
             "the monitor is NAME, max(NAME) or min(NAME)"},
        Case{DLC_MODEL "train { monitor = \"size\" }", "test.dl:3:19",
             "the monitor is NAME, max(NAME) or min(NAME)"},
        Case{DLC_MODEL "train { monitor = max(loss) }", "test.dl:3:19",
             "training makes the loss small; write monitor = loss"},
        Case{DLC_MODEL "train { freeze = \"*.bias\" }", "test.dl:3:18",
             "expected a list of patterns"},
        Case{DLC_MODEL "train { freeze = [\"*.bias\", \"*.weigth\"] }", "test.dl:3:29",
             "pattern \"*.weigth\" matches no parameter of the model; near it are "
             "'dense.0.weight', 'dense.0.bias'"},
        Case{DLC_MODEL "train { lr_scale = [\"*.bias\"] }", "test.dl:3:20",
             "expected a list of [pattern, factor]"},
        Case{DLC_MODEL "train { lr_scale = [[\"*.bias\", 2], [\"bias\", 2]] }", "test.dl:3:36",
             "pattern \"bias\" matches no parameter"},
        Case{DLC_MODEL "train { lr_scale = [[\"*.bias\", -1]] }", "test.dl:3:21",
             "cannot be -1, expected a number finite and at least 0"},
        Case{DLC_MODEL "train { ema = 1 }", "test.dl:3:15",
             "'ema' is a number above 0 to below 1, got"},
        Case{DLC_MODEL "train { clip_norm = 0 }", "test.dl:3:21",
             "'clip_norm' is a number finite and above 0, got"},
        Case{DLC_MODEL "train { freeze = [\"[a\"] }", "test.dl:3:19", "is no pattern"},
        Case{DLC_MODEL "train { early_stop() }", "test.dl:3:9", "needs its argument 'patience'"},
        Case{DLC_MODEL "predict { bach = 1 }", "test.dl:3:11", "did you mean 'batch'?"},
        Case{DLC_MODEL "predict { batch = 1.5 }", "test.dl:3:19", "prediction cannot make it"},
        Case{DLC_MODEL "data { x -> flop -> x }", "test.dl:3:13",
             "'normalize', 'flip', 'rotate90'"},
        Case{DLC_MODEL "data { x -> rotate90(1) -> x }", "test.dl:3:22", "takes 0 arguments"},
        Case{DLC_MODEL "data { x -> flip(axes = \"XC\") -> x }", "test.dl:3:25",
             "letters of ZYX, got \"XC\""},
        Case{DLC_MODEL "data { x -> normalize(per_imag) -> x }", "test.dl:3:23",
             "did you mean 'per_image'?"},
        Case{DLC_MODEL "data { x -> normalize(mean = 1.0) -> x }", "test.dl:3:13",
             "both mean and std"},
        Case{DLC_MODEL "data { x -> normalize(mean = 1.0, std = 0) -> x }", "test.dl:3:41",
             "cannot be 0"},
        Case{DLC_MODEL "data { x -> normalize(per_image, percentile = [1, 99]) -> x }",
             "test.dl:3:13", "both mean and std, or percentile"},
        Case{DLC_MODEL "data { x -> normalize(percentile = [99, 1]) -> x }", "test.dl:3:36",
             "'percentile' of normalize is [low, high], got [99, 1]"},
        Case{DLC_MODEL "data { x -> normalize(percentile = [0, 101]) -> x }", "test.dl:3:36",
             "expected a number from 0 to 100"},
        Case{DLC_MODEL "data { x -> crop -> x }", "test.dl:3:13", "crop needs its argument 'size'"},
        Case{DLC_MODEL "data { x -> crop([0, 4]) -> x }", "test.dl:3:18",
             "expected a number from 1 to"},
        Case{DLC_IMAGES "data { x -> resize([4, 4, 4]) -> x }", "test.dl:2:13",
             "resize gives 3 extents, but images of input 'x' have 2 spatial axes"},
        Case{DLC_MODEL "data { x -> random_crop(4, padding = -1) -> x }", "test.dl:3:38",
             "'padding' of random_crop cannot be -1"},
        Case{DLC_MODEL "data { x -> random_resized_crop(4, scale = [0.5, 0.1]) -> x }",
             "test.dl:3:44", "'scale' of random_resized_crop is [low, high]"},
        Case{DLC_MODEL "data { x -> random_resized_crop(4, ratio = [1, 2, 3]) -> x }",
             "test.dl:3:44", "'ratio' of random_resized_crop is [low, high]"},
        Case{DLC_MODEL "data { x -> contrast(low = 2, high = 1) -> x }", "test.dl:3:13",
             "'low' of contrast is above 'high'"},
        Case{DLC_MODEL "data { x -> gamma(0, 1) -> x }", "test.dl:3:19",
             "'low' of gamma cannot be 0"},
        Case{DLC_MODEL "data { x -> noise(std = -1) -> x }", "test.dl:3:25",
             "'std' of noise cannot be -1"},
        Case{DLC_IMAGES "data { x -> patches(4) -> x; x -> flip -> patches(2) -> x }",
             "test.dl:2:43", "patches stands once in a data block"},
        Case{DLC_IMAGES "data { x -> flip -> patches(4) -> x }", "test.dl:2:13",
             "put flip behind it"},
        Case{DLC_IMAGES "data { x -> normalize(per_image) -> x; x -> patches(4) -> x }",
             "test.dl:2:13", "put normalize behind it"},
        Case{DLC_IMAGES "data { x -> patches(4) -> normalize -> x }", "test.dl:2:27",
             "normalize(dataset) measures whole volumes; put it before patches"},
        Case{DLC_IMAGES "data { x -> blind_spot -> x }", "test.dl:2:8",
             "this chain makes 3 arrays, but names 1"},
        Case{DLC_IMAGES "data { x -> blind_spot -> blind_spot -> x, x, x }", "test.dl:2:27",
             "image, target and mask of one array, got 3"},
        Case{DLC_IMAGES "data { x -> blind_spot(replace = meen) -> x, x, x }", "test.dl:2:34",
             "did you mean 'mean'?"},
        Case{DLC_IMAGES "data { x -> blind_spot(percent = 0) -> x, x, x }", "test.dl:2:34",
             "'percent' of blind_spot cannot be 0"},
        Case{DLC_IMAGES "data { x -> blind_spot(struct = [1, 0, 1], axis = \"C\") -> x, x, x }",
             "test.dl:2:51", "axis of blind_spot is"},
        Case{DLC_MODEL "data { z -> flip -> x }", "test.dl:3:8", "unknown source 'z'"},
        Case{DLC_MODEL "data { x -> flip -> z }", "test.dl:3:21", "has no input 'z'"},
        Case{DLC_MODEL "data { x -> flip -> x, x }", "test.dl:3:8", "makes 1 arrays"},
        Case{DLC_MODEL "data { x -> flip }", "test.dl:3:13", "has no input 'flip'"},
        Case{DLC_MODEL "data { source z : axes = \"NYX\" }", "test.dl:3:8", "feeds no input"},
        Case{DLC_MODEL "data { source x : axes = \"NYQ\" }", "test.dl:3:26",
             "letters of \"NCZYX\""},
        Case{DLC_MODEL "data { validation = 1.5 }", "test.dl:3:21", "a share from 0 to below 1"},
        Case{DLC_MODEL "data { validaton = 0.5 }", "test.dl:3:8", "did you mean 'validation'?"}));

struct SetCase {
  const char *set;
  const char *where;
  const char *message;
};
class SetError : public testing::TestWithParam<SetCase> {};
TEST_P(SetError, IsReported) {
  Options options;
  options.sets.emplace_back(GetParam().set);
  Case expected{"", GetParam().where, GetParam().message};
  expectError("model m(batch = 2, rate = 0.5, patch = [2, 3], flag = true) {\n"
              "  require flag, \"no\"\n  input x : f32[batch, patch...]; loss = mean(x * rate) }\n",
              expected, options);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, SetError,
    testing::Values(SetCase{"bach=3", "--set:1:1", "it has 'batch', 'rate', 'patch', 'flag'"},
                    SetCase{"bach=3", "--set:1:1", "did you mean 'batch'?"},
                    SetCase{"batch", "--set:1:1", "NAME=VALUE"},
                    SetCase{"=3", "--set:1:1", "NAME=VALUE"},
                    SetCase{"batch=many", "--set:1:7",
                            "expects an int like its default 2, got 'many'"},
                    SetCase{"batch=2.5", "--set:1:7", "expects an int"},
                    SetCase{"batch=0", "test.dl:3:17", "a positive int"},
                    SetCase{"rate=x", "--set:1:6", "expects a number"},
                    SetCase{"flag=1", "--set:1:6", "expects true or false"},
                    SetCase{"patch=1,x", "--set:1:9", "expects an int"},
                    SetCase{"train.epochs=five", "--set:1:14", "nothing named 'five' has a value"},
                    SetCase{"train.epoch=5", "--set:1:7", "did you mean 'epochs'?"},
                    SetCase{"train.optimizer=sgd(lr=0.1", "--set:1:27", "expected ',' or ')'"},
                    SetCase{"train.monitor=max(x)", "--set:1:19", "max(NAME) or min(NAME)"},
                    SetCase{"predict.size=5", "--set:1:9", "has no 'size'"},
                    SetCase{"data.validation=2", "--set:1:17", "a share"}));

TEST(Errors, NameTheCallsThatLedThere) {
  Elaborated result("fn inner(x) { return conv(x, 0, kernel = 1) }\n"
                    "fn outer(x) { return inner(x, name = \"in\") }\n" +
                    withBody("  y = outer(image, name = \"out\")"));
  EXPECT_NE(result.diagnostics.find("test.dl:2:22: note: in this call of 'inner', layer out.in"),
            std::string::npos)
      << result.diagnostics;
  EXPECT_NE(result.diagnostics.find("test.dl:6:7: note: in this call of 'outer', layer out"),
            std::string::npos);
}

TEST(Errors, ShowTheLineAndACaret) {
  Elaborated result(withBody("  y = imge"));
  EXPECT_NE(result.diagnostics.find("\n  y = imge\n      ^\n"), std::string::npos)
      << result.diagnostics;
}

TEST(Errors, OfPredictionNameItsOverrides) {
  Elaborated result(withBody("  require size mod 8 == 0, \"size is {size}\"\n  y = relu(image)") +
                    "predict { size = 12 }");
  EXPECT_NE(result.diagnostics.find("size is 12"), std::string::npos) << result.diagnostics;
  EXPECT_NE(result.diagnostics.find("note: this is in the program for prediction, where size = 12"),
            std::string::npos);
}

TEST(Errors, LayersDoNotChangeNamesBetweenPrograms) {
  Elaborated result(withBody("  y = conv(image, 1, kernel = 1)\n"
                             "  if training { y = conv(y, 1, kernel = 1) }\n"
                             "  y = conv(y, 1, kernel = 1)"));
  EXPECT_NE(
      result.diagnostics.find("test.dl:6:7: error: 'conv.1.weight' names another layer in @eval"),
      std::string::npos)
      << result.diagnostics;
}

TEST(Errors, PredictionKeepsTheShapesOfParameters) {
  Elaborated result(
      "model m(batch = 2, size = 8) {\n  input x : f32[batch, size]\n  y = dense(x, 1)\n"
      "  output p = y\n  loss = mean(y)\n}\npredict { size = 9 }");
  EXPECT_NE(
      result.diagnostics.find("'dense.0.weight' has shape f32[1, 9] in @predict and f32[1, 8]"),
      std::string::npos)
      << result.diagnostics;
}

TEST(Errors, EndlessListsAreRefused) {
  std::string arguments, functions;
  for (int i = 0; i < 2000; ++i) {
    arguments += "a" + std::to_string(i) + " = 1,";
    functions += "fn f" + std::to_string(i) + "() { return 1 }\n";
  }
  Elaborated call(withBody("  y = relu(" + arguments + ")"));
  EXPECT_NE(call.diagnostics.find("more than 256 arguments"), std::string::npos);
  Elaborated model("model m(" + arguments + ") { }");
  EXPECT_NE(model.diagnostics.find("more than 256 parameters"), std::string::npos);
  Elaborated file(functions + "model m() { }");
  EXPECT_NE(file.diagnostics.find("more than 1024 functions"), std::string::npos);
  Elaborated text(std::string(1 << 19, ' '));
  EXPECT_NE(text.diagnostics.find("larger than 256 KiB"), std::string::npos);
}

TEST(Errors, DeepNestingIsRefused) {
  std::string deep = "  y = image * " + std::string(1000, '(') + "1" + std::string(1000, ')');
  Elaborated parens(withBody(deep));
  EXPECT_NE(parens.diagnostics.find("nested deeper than"), std::string::npos);
  std::string sum = "  y = image";
  for (int i = 0; i < 1000; ++i)
    sum += " + 1";
  Elaborated chain(withBody(sum));
  EXPECT_NE(chain.diagnostics.find("split it in parts"), std::string::npos);
  std::string blocks = "  y = image\n";
  for (int i = 0; i < 1000; ++i)
    blocks += "if true {\n";
  Elaborated nested(withBody(blocks));
  EXPECT_NE(nested.diagnostics.find("nested deeper than"), std::string::npos);
}
