// Pooling inside of generated kernels against the reference evaluator: windows that tile tensors
// whose innermost elements are channels.

#include "test/unit/passes/ClusterRunner.h"

#include <gtest/gtest.h>

using namespace dlc;
using namespace dlc::test;

namespace {
struct Case {
  const char *full, *pooled, *kernel, *layout;
};
} // namespace

static const Case cases[] = {{"2x20x6x8", "2x20x3x4", "2, 2", "nChw16c"},
                             {"2x20x6x8", "2x20x3x4", "2, 2", "nhwc"},
                             {"1x16x6x6", "1x16x2x3", "3, 2", "nChw8c"},
                             {"2x3x4x4x6", "2x3x2x2x2", "2, 2, 3", "ndhwc"},
                             {"3x40x64x64", "3x40x32x32", "2, 2", "nChw16c"}};

static std::string tensor(const char *shape, const char *element, const char *layout) {
  return std::string("tensor<") + shape + "x" + element + ", #nn.layout<" + layout + ">>";
}

static std::string windows(const Case &test) {
  std::string zeros = std::string(test.kernel).size() > 4 ? "0, 0, 0" : "0, 0";
  std::string array = "array<i64: ";
  return "{kernel = " + array + test.kernel + ">, strides = " + array + test.kernel +
         ">, padding_low = " + array + zeros + ">, padding_high = " + array + zeros + ">}";
}

static Aliases aliases(const Case &test) {
  return {{"!t", tensor(test.full, "f32", test.layout)},
          {"!p", tensor(test.pooled, "f32", test.layout)},
          {"!i", tensor(test.pooled, "i8", test.layout)},
          {"!b", tensor(test.full, "i1", test.layout)}};
}

// The operand is computed where it is pooled, and the maximum goes on.
TEST(CodegenPool, Forward) {
  for (const Case &test : cases) {
    SCOPED_TRACE(std::string(test.full) + " " + test.layout);
    ClusterRunner runner(aliases(test), {{"!t"}},
                         "%x = nn.relu %0 : (!t) -> !t\n"
                         "%y, %i = nn.max_pool %x " +
                             windows(test) +
                             " : (!t) -> (!p, !i)\n"
                             "%z = nn.neg %y : (!p) -> !p",
                         {{"%z", "!p"}, {"%y", "!p"}, {"%i", "!i"}});
    runner.check(0, 0);
  }
}

// NaN wins, the first one if there are several.
TEST(CodegenPool, NotANumber) {
  const Case test = {"1x16x2x6", "1x16x1x3", "2, 2", "nChw16c"};
  ClusterRunner runner(aliases(test), {{"!t"}},
                       "%y, %i = nn.max_pool %0 " + windows(test) + " : (!t) -> (!p, !i)",
                       {{"%y", "!p"}, {"%i", "!i"}});
  reference::Tensor x({1, 16, 2, 6});
  double nan = std::nan("");
  std::vector<double> first = {1, nan, 2, 2, nan, 1, 3, nan, 2, 2, 4, 5};
  std::copy(first.begin(), first.end(), x.data.begin());
  std::vector<reference::Tensor> y = runner.run({x});
  EXPECT_TRUE(std::isnan(y[0].data[0]));
  EXPECT_EQ(y[0].data[1], 2);
  EXPECT_TRUE(std::isnan(y[0].data[2]));
  EXPECT_EQ(y[1].data[0], 1);
  EXPECT_EQ(y[1].data[1], 0);
  EXPECT_EQ(y[1].data[2], 0);
}

// The gradient beside other operands, written and summed.
TEST(CodegenPool, Gradient) {
  for (const Case &test : cases) {
    SCOPED_TRACE(std::string(test.full) + " " + test.layout);
    std::string sumDims = std::string(test.kernel).size() > 4 ? "0, 2, 3, 4" : "0, 2, 3";
    std::string channels = std::string(test.full).substr(2);
    Aliases types = aliases(test);
    types.emplace_back("!c", "tensor<" + channels.substr(0, channels.find('x')) + "xf32>");
    ClusterRunner runner(types, {{"!p"}, {"!i", 0, 4}, {"!t"}},
                         "%zero = nn.constant dense<0.0> : !t\n"
                         "%g = nn.max_pool_grad %0, %1 " +
                             windows(test) +
                             " : (!p, !i) -> !t\n"
                             "%m = nn.compare gt %2, %zero : (!t, !t) -> !b\n"
                             "%d = nn.select %m, %g, %zero : (!b, !t, !t) -> !t\n"
                             "%s = nn.reduce_sum %d {dims = array<i64: " +
                             sumDims + ">} : (!t) -> !c",
                         {{"%d", "!t"}, {"%s", "!c"}});
    runner.check(1, 1e-5);
  }
}

namespace {
/// Windows that overlap, or leave something out, with padding.
struct Overlap {
  const char *full, *pooled, *kernel, *strides, *low, *high, *layout;
  double positions; // in a window
};
} // namespace

static const Overlap overlaps[] = {
    {"2x16x8x8", "2x16x4x4", "3, 3", "2, 2", "1, 1", "1, 1", "nhwc", 9},    // a ResNet's
    {"2x16x9x11", "2x16x4x5", "3, 3", "2, 2", "0, 0", "0, 0", "nhwc", 9},   // Inception's
    {"1x5x7x6", "1x5x7x6", "3, 3", "1, 1", "1, 1", "1, 1", "nhwc", 9},      // all of them
    {"1x3x7x8", "1x3x2x3", "2, 2", "3, 3", "0, 1", "0, 0", "nhwc", 4},      // with gaps
    {"1x16x12x14", "1x16x3x4", "5, 4", "3, 3", "0, 1", "0, 0", "nhwc", 20}, // two or one
    {"2x8x8x10", "2x8x3x4", "4, 4", "2, 2", "0, 0", "0, 0", "nhwc", 16},
    {"2x16x6x5", "2x16x3x3", "3, 3", "2, 2", "1, 1", "0, 1", "nChw16c", 9},
    {"1x8x5x5x4", "1x8x3x3x2", "3, 3, 2", "2, 2, 2", "1, 1, 0", "1, 1, 0", "ndhwc", 18}};

static std::string windows(const Overlap &test) {
  auto array = [](const char *values) { return std::string("array<i64: ") + values + ">"; };
  return "{kernel = " + array(test.kernel) + ", strides = " + array(test.strides) +
         ", padding_low = " + array(test.low) + ", padding_high = " + array(test.high) + "}";
}

TEST(CodegenPool, OverlappingForward) {
  for (const Overlap &test : overlaps)
    for (const char *element : {"f32", "bf16"}) {
      SCOPED_TRACE(std::string(test.full) + " " + test.kernel + " " + element);
      ClusterRunner runner({{"!t", tensor(test.full, element, test.layout)},
                            {"!p", tensor(test.pooled, element, test.layout)},
                            {"!i", tensor(test.pooled, "i8", test.layout)}},
                           {{"!t", -9, -1}},
                           "%x = nn.neg %0 : (!t) -> !t\n%m = nn.neg %x : (!t) -> !t\n"
                           "%y, %i = nn.max_pool %m " +
                               windows(test) +
                               " : (!t) -> (!p, !i)\n"
                               "%z = nn.abs %y : (!p) -> !p",
                           {{"%z", "!p"}, {"%y", "!p"}, {"%i", "!i"}});
      runner.check(0, 0);
    }
}

// An element may be the maximum of several windows.
TEST(CodegenPool, OverlappingGradient) {
  for (const Overlap &test : overlaps)
    for (const char *element : {"f32", "bf16"}) {
      SCOPED_TRACE(std::string(test.full) + " " + test.kernel + " " + element);
      ClusterRunner runner({{"!t", tensor(test.full, element, test.layout)},
                            {"!p", tensor(test.pooled, element, test.layout)},
                            {"!i", tensor(test.pooled, "i8", test.layout)}},
                           {{"!p"}, {"!i", 0, test.positions}},
                           "%dx = nn.max_pool_grad %0, %1 " + windows(test) + " : (!p, !i) -> !t",
                           {{"%dx", "!t"}});
      runner.check(element[0] == 'b' ? 0x1p17 : 8, 1e-6);
    }
}

// What has an element at its first tap comes first, which rounding shows: of the middle one, in
// four windows at taps 8, 6, 2 and 0, 5 + 2^27 + 7 - 2^27.
TEST(CodegenPool, OverlappingGradientInOrder) {
  const Overlap image = {"1x1x3x3", "1x1x2x2", "3, 3", "2, 2", "1, 1", "1, 1", "nhwc", 9};
  ClusterRunner runner({{"!t", tensor(image.full, "f32", image.layout)},
                        {"!p", tensor(image.pooled, "f32", image.layout)},
                        {"!i", tensor(image.pooled, "i8", image.layout)}},
                       {{"!p"}, {"!i", 0, image.positions}},
                       "%dx = nn.max_pool_grad %0, %1 " + windows(image) + " : (!p, !i) -> !t",
                       {{"%dx", "!t"}});
  reference::Tensor dy({1, 1, 2, 2}), index({1, 1, 2, 2});
  dy.data = {-0x1p27, 7, 0x1p27, 5};
  index.data = {8, 6, 2, 0};
  for (const std::vector<reference::Tensor> &dx :
       {runner.run({dy, index}), runner.runOnGpu({dy, index})})
    EXPECT_EQ(dx[0].data, std::vector<double>(9, 0));
}

// The windows' gradients may be some channels, rows and columns of a larger tensor.
TEST(CodegenPool, OverlappingGradientOfASlice) {
  for (const char *layout : {"nhwc", "nChw8c"}) {
    SCOPED_TRACE(layout);
    ClusterRunner runner({{"!t", tensor("2x16x8x8", "f32", layout)},
                          {"!w", tensor("2x24x6x5", "f32", layout)},
                          {"!p", tensor("2x16x4x4", "f32", layout)},
                          {"!i", tensor("2x16x4x4", "i8", layout)}},
                         {{"!w"}, {"!i", 0, 9}},
                         "%dy = nn.slice %0 {start = array<i64: 0, 8, 1, 1>, size = array<i64: 2, "
                         "16, 4, 4>} : (!w) -> !p\n"
                         "%dx = nn.max_pool_grad %dy, %1 " +
                             windows(overlaps[0]) + " : (!p, !i) -> !t",
                         {{"%dx", "!t"}});
    runner.check(8, 1e-6);
  }
}
