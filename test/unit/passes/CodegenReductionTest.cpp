// Generated reductions against the reference evaluator: which dimensions are kept, how they lie in
// memory, whole results and partial ones.

#include "test/unit/passes/ClusterRunner.h"

#include <gtest/gtest.h>

using namespace dlc;
using namespace dlc::test;

namespace {
struct Case {
  const char *shape, *layout, *dims, *result;
};
} // namespace

static std::string text(const Case &test) {
  return std::string(test.shape) + " " + test.layout + " over " + test.dims;
}

static std::string tensor(const std::string &shape, const std::string &element,
                          const std::string &layout = "") {
  return "tensor<" + shape + (shape.empty() ? "" : "x") + element +
         (layout.empty() ? "" : ", #nn.layout<" + layout + ">") + ">";
}

static const Case cases[] = {
    {"2x5x7x9", "", "0, 2, 3", "5"},
    {"2x5x7x9", "nhwc", "0, 2, 3", "5"},
    {"2x20x7x9", "nChw16c", "0, 2, 3", "20"},
    {"2x20x7x9", "nhwc", "0, 2, 3", "20"},
    {"2x20x7x9", "nChw16c", "2, 3", "2x20"},
    {"2x20x7x9", "nhwc", "2, 3", "2x20"},
    {"2x20x7x9", "", "2, 3", "2x20"},
    {"2x20x7x9", "nChw16c", "0, 1, 2, 3", ""},
    {"2x20x7x9", "nChw16c", "1", "2x7x9"},
    {"2x20x7x9", "", "0", "20x7x9"},
    {"13x10", "", "1", "13"},
    {"13x37", "", "1", "13"},
    {"13x37", "", "0", "37"},
    {"1000", "", "0", ""},
    {"20000", "", "0", ""},
    {"2x20x3x4x5", "nCdhw16c", "0, 2, 3, 4", "20"},
    {"2x20x3x4x5", "ndhwc", "0, 2, 3, 4", "20"},
    {"1x1x1x1", "", "0, 2, 3", "1"},
    {"10007", "", "0", ""},
    // Large enough for partial results.
    {"2x16x64x64", "nChw16c", "0, 2, 3", "16"},
    {"2x16x64x64", "nhwc", "0, 2, 3", "16"},
    {"2x16x64x64", "", "0, 2, 3", "16"},
    {"2x20x48x48", "nChw16c", "0, 2, 3", "20"},
    {"2x16x64x64", "", "0, 1, 2, 3", ""},
    {"3x131x67x5", "", "0, 2, 3", "131"},
    // Several vectors of channels side by side, in whole and in ragged blocks.
    {"2x64x9x7", "nhwc", "0, 2, 3", "64"},
    {"3x216x5x5", "nhwc", "0, 2, 3", "216"},
    {"1x100x33x17", "nhwc", "2, 3", "1x100"},
    {"77x48", "", "0", "48"},
    // Extents without divisors: the last item is shorter.
    {"40009", "", "0", ""},
    {"1x16x40009", "nwc", "0, 2", "16"},
    {"2x40009", "", "1", "2"},
    {"3x12007", "", "0", "12007"},
    {"100003", "", "0", ""},
    // Many columns: no partial results.
    {"12x5000", "", "0", "5000"},
    {"300x200", "", "1", "300"},
};

// So many partial results that combining them would be worth several items, were it not one sum.
TEST(CodegenReduction, ManyPartialResults) {
  ClusterRunner runner(
      {{"!t", tensor("128x16x64x64", "f32", "nChw16c")}, {"!r", tensor("16", "f32")}}, {{"!t"}},
      "%s = nn.reduce_sum %0 {dims = array<i64: 0, 2, 3>} : (!t) -> !r", {{"%s", "!r"}});
  EXPECT_EQ(runner.plan().stages.back().extent, 1);
  runner.check();
}

// Sums over channels of many pixels: no partial results, though the channels are what vectors run
// along.
TEST(CodegenReduction, OverChannels) {
  for (const char *layout : {"nChw16c", "nhwc", "nchw"}) {
    SCOPED_TRACE(layout);
    ClusterRunner runner(
        {{"!t", tensor("2x40x64x64", "f32", layout)}, {"!r", tensor("2x64x64", "f32")}}, {{"!t"}},
        "%y = nn.relu %0 : (!t) -> !t\n"
        "%s = nn.reduce_sum %y {dims = array<i64: 1>} : (!t) -> !r",
        {{"%s", "!r"}, {"%y", "!t"}});
    EXPECT_TRUE(runner.plan().scratch.empty());
    runner.check(8);
  }
}

// On a GPU each thread adds up rows, which a block brings through shared memory, and so what is
// stored beside the sums: several rows a thread, rows of no whole vectors, one that leaves no room.
TEST(CodegenReduction, OfRows) {
  for (auto [shape, rows, element] : {std::tuple("2x16x64x64", "2x64x64", "f32"),
                                      {"3x16x32x64", "3x32x64", "bf16"},
                                      {"2x24x32x32", "2x32x32", "bf16"},
                                      {"1x32x64x64", "1x64x64", "f16"},
                                      {"2x18x16x16x16", "2x16x16x16", "bf16"},
                                      {"1x32x16x1024", "1x16x1024", "f32"}}) {
    SCOPED_TRACE(std::string(shape) + " " + element);
    std::string layout = std::string_view(shape).ends_with("16x16x16") ? "ndhwc" : "nhwc";
    bool isNarrow = element != std::string("f32");
    ClusterRunner runner({{"!x", tensor(shape, element, layout)},
                          {"!t", tensor(shape, "f32", layout)},
                          {"!r", tensor(rows, "f32")}},
                         {{"!x"}, {"!t"}},
                         std::string(isNarrow ? "%f = nn.cast %0 : (!x) -> !t\n"
                                              : "%f = nn.relu %0 : (!x) -> !t\n") +
                             "%y = nn.relu %0 : (!x) -> !x\n"
                             "%p = nn.mul %f, %1 : (!t, !t) -> !t\n"
                             "%s = nn.reduce_sum %p {dims = array<i64: 1>} : (!t) -> !r\n"
                             "%m = nn.reduce_max %f {dims = array<i64: 1>} : (!t) -> !r",
                         {{"%s", "!r"}, {"%y", "!x"}, {"%m", "!r"}});
    runner.check(8, 1e-5);
  }
}

TEST(CodegenReduction, SumsAndMaxima) {
  for (const Case &test : cases) {
    SCOPED_TRACE(text(test));
    std::string dims = std::string("{dims = array<i64: ") + test.dims + ">}";
    ClusterRunner runner(
        {{"!t", tensor(test.shape, "f32", test.layout)}, {"!r", tensor(test.result, "f32")}},
        {{"!t", -1, 2}, {"!t"}},
        "%p = nn.mul %0, %1 : (!t, !t) -> !t\n"
        "%s = nn.reduce_sum %0 " +
            dims +
            " : (!t) -> !r\n"
            "%m = nn.reduce_max %p " +
            dims +
            " : (!t) -> !r\n"
            "%q = nn.reduce_sum %p " +
            dims + " : (!t) -> !r",
        {{"%s", "!r"}, {"%m", "!r"}, {"%q", "!r"}});
    // The product is rounded before it is summed: that error, and one rounding of the sum.
    double elements = runner.randomOperands(1)[0].size();
    runner.check(1, elements * 0x1p-24 * 0.5);
  }
}

// A sum is rounded once: exact where the terms are integers.
TEST(CodegenReduction, RoundsOnce) {
  for (const Case &test : cases) {
    SCOPED_TRACE(text(test));
    ClusterRunner runner({{"!t", tensor(test.shape, "f32", test.layout)},
                          {"!i", tensor(test.shape, "i32", test.layout)},
                          {"!r", tensor(test.result, "f32")}},
                         {{"!i", -1000000, 10000000}},
                         "%f = nn.cast %0 : (!i) -> !t\n"
                         "%s = nn.reduce_sum %f {dims = array<i64: " +
                             std::string(test.dims) + ">} : (!t) -> !r",
                         {{"%s", "!r"}});
    runner.check(1);
  }
}

// A cluster may write its elements and reduce them in one pass; padding takes no part in either.
TEST(CodegenReduction, WithElementwiseResult) {
  for (const Case &test : cases) {
    SCOPED_TRACE(text(test));
    std::string dims = std::string("{dims = array<i64: ") + test.dims + ">}";
    ClusterRunner runner({{"!t", tensor(test.shape, "f32", test.layout)},
                          {"!w", tensor(test.shape, "f64", test.layout)},
                          {"!r", tensor(test.result, "f64")}},
                         {{"!t"}},
                         "%c = nn.constant dense<3.0> : !t\n"
                         "%y = nn.add %0, %c : (!t, !t) -> !t\n"
                         "%w = nn.cast %y : (!t) -> !w\n"
                         "%s = nn.reduce_sum %w " +
                             dims + " : (!w) -> !r",
                         {{"%s", "!r"}, {"%y", "!t"}});
    runner.check(4);
  }
}

// Terms that are rounded to f32 are added in f32 for a while: the error of many is that of a few,
// even where all are equal and are rounded alike.
TEST(CodegenReduction, ErrorsDoNotGrow) {
  for (const char *shape : {"1x16x16x16", "2x16x128x128"}) {
    for (const char *layout : {"nhwc", "nchw"}) {
      SCOPED_TRACE(std::string(shape) + " " + layout);
      ClusterRunner runner({{"!t", tensor(shape, "f32", layout)},
                            {"!r", tensor("16", "f64")},
                            {"!w", tensor(shape, "f64", layout)}},
                           {{"!t", 1.1, 1.1}, {"!t", 1, 2}},
                           "%y = nn.add %0, %0 : (!t, !t) -> !t\n"
                           "%p = nn.mul %0, %1 : (!t, !t) -> !t\n"
                           "%c = nn.add %p, %1 : (!t, !t) -> !t\n"
                           "%v = nn.cast %y : (!t) -> !w\n"
                           "%w = nn.cast %c : (!t) -> !w\n"
                           "%s = nn.reduce_sum %v {dims = array<i64: 0, 2, 3>} : (!w) -> !r\n"
                           "%q = nn.reduce_sum %w {dims = array<i64: 0, 2, 3>} : (!w) -> !r",
                           {{"%s", "!r"}, {"%q", "!r"}});
      runner.check(4, 0);
    }
  }
}

// Squares of bf16 are exact in f32, and so is a run of them: what a variance is the difference of
// loses nothing. Neither do f32's, computed or not, which are added in f64 throughout.
TEST(CodegenReduction, StatisticsAreExact) {
  for (const Case &test : cases)
    for (auto [element, value] :
         {std::pair("bf16", "%0"), std::pair("f32", "%0"), std::pair("f32", "%n")}) {
      SCOPED_TRACE(text(test) + " " + element + " " + value);
      std::string dims = std::string("{dims = array<i64: ") + test.dims + ">}";
      bool narrow = element[0] == 'b';
      ClusterRunner runner({{"!t", tensor(test.shape, element, test.layout)},
                            {"!w", tensor(test.shape, "f64", test.layout)},
                            {"!r", tensor(test.result, "f64")}},
                           {{"!t", narrow ? 64. : 1000.1, narrow ? 127. : 1000.2}},
                           std::string("%n = nn.neg %0 : (!t) -> !t\n%w = nn.cast ") + value +
                               " : (!t) -> !w\n"
                               "%q = nn.mul %w, %w : (!w, !w) -> !w\n"
                               "%s = nn.reduce_sum %w " +
                               dims +
                               " : (!w) -> !r\n"
                               "%v = nn.reduce_sum %q " +
                               dims + " : (!w) -> !r",
                           {{"%s", "!r"}, {"%v", "!r"}});
      runner.check(narrow ? 0 : 0x1p-20, 0);
    }
}

// Bits depend on the plan alone, so the plan must not depend on anything but the cluster.
TEST(CodegenReduction, ItemsCoverEverythingOnce) {
  for (const Case &test : cases) {
    SCOPED_TRACE(text(test));
    ClusterRunner runner(
        {{"!t", tensor(test.shape, "f32", test.layout)}, {"!r", tensor(test.result, "f32")}},
        {{"!t"}},
        "%s = nn.reduce_sum %0 {dims = array<i64: " + std::string(test.dims) + ">} : (!t) -> !r",
        {{"%s", "!r"}});
    std::vector<reference::Tensor> operands = runner.randomOperands(7);
    std::vector<reference::Tensor> first = runner.run(operands), second = runner.run(operands);
    EXPECT_EQ(first[0].data, second[0].data);
    EXPECT_LE(runner.plan().stages.size(), 2u);
    for (const GeneratedStage &stage : runner.plan().stages)
      EXPECT_LE(llvm::divideCeil(stage.extent, stage.chunk), 512u);
  }
}
