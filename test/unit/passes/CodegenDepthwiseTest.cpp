// Convolutions in which each channel has a filter of its own, and their gradients, inside of
// generated kernels against the reference evaluator.

#include "test/unit/passes/ClusterRunner.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

using namespace dlc;
using namespace dlc::test;

namespace {
/// Shapes of x, y and the weight; strides, padding and dilations.
struct Case {
  const char *x, *y, *weight, *strides, *low, *high, *dilations, *layout, *filters;
  std::string channels() const { return llvm::StringRef(weight).split('x').first.str(); }
  /// All dimensions but the channels'.
  const char *places() const {
    return llvm::StringRef(x).count('x') == 4 ? "0, 2, 3, 4" : "0, 2, 3";
  }
};
} // namespace

static const Case cases[] = {
    {"2x16x6x8", "2x16x6x8", "16x1x3x3", "1, 1", "1, 1", "1, 1", "1, 1", "nhwc", "hwcn"},
    {"2x24x7x9", "2x24x4x5", "24x1x3x3", "2, 2", "1, 1", "1, 1", "1, 1", "nhwc", "hwcn"},
    {"1x20x8x7", "1x20x4x4", "20x1x5x3", "2, 2", "2, 1", "1, 2", "1, 1", "nhwc", "hwcn"},
    {"2x8x9x9", "2x8x9x9", "8x1x3x3", "1, 1", "2, 2", "2, 2", "2, 2", "nhwc", "hwcn"},
    {"1x5x7x6", "1x5x3x6", "5x1x2x1", "2, 1", "0, 0", "0, 0", "1, 1", "nhwc", "hwcn"},
    {"1x3x9x10", "1x3x4x3", "3x1x3x2", "2, 3", "1, 0", "0, 0", "1, 3", "nhwc", "nchw"},
    {"1x8x2x2", "1x8x2x2", "8x1x7x7", "1, 1", "3, 3", "3, 3", "1, 1", "nhwc", "hwcn"},
    {"1x8x5x4x6", "1x8x3x4x3", "8x1x3x3x3", "2, 1, 2", "1, 1, 1", "1, 1, 1", "1, 1, 1", "ndhwc",
     "dhwcn"}};

static const char *elements[] = {"f32", "bf16", "f16"};

static std::string tensor(llvm::StringRef shape, llvm::StringRef element, llvm::StringRef layout) {
  return llvm::formatv("tensor<{0}x{1}, #nn.layout<{2}>>", shape, element, layout);
}

static std::string vectorOf(const Case &test, llvm::StringRef element) {
  return "tensor<" + test.channels() + "x" + element.str() + ">";
}

static std::string attributes(const Case &test, llvm::StringRef more = "") {
  return llvm::formatv("{{strides = array<i64: {0}>, padding_low = array<i64: {1}>, padding_high = "
                       "array<i64: {2}>, dilations = array<i64: {3}>, groups = {4}{5}}",
                       test.strides, test.low, test.high, test.dilations, test.channels(), more);
}

static Aliases aliases(const Case &test, llvm::StringRef element) {
  return {{"!x", tensor(test.x, element, test.layout)},
          {"!y", tensor(test.y, element, test.layout)},
          {"!w", tensor(test.weight, element, test.filters)},
          {"!b", vectorOf(test, element)}};
}

/// Of results that are rounded once.
static double ulpsOf(llvm::StringRef element) {
  return element == "f32" ? 64 : element == "bf16" ? 0x1p16 : 0x1p13;
}

static void forEachCase(llvm::function_ref<void(const Case &, const char *)> check) {
  for (const Case &test : cases)
    for (const char *element : elements) {
      SCOPED_TRACE(std::string(test.x) + " " + test.weight + " " + element);
      check(test, element);
    }
}

// What follows is computed beside it: here a scale for each channel, and a sum over all others.
TEST(CodegenDepthwise, Forward) {
  forEachCase([](const Case &test, const char *element) {
    Aliases types = aliases(test, element);
    types.emplace_back("!s", vectorOf(test, element));
    ClusterRunner runner(types, {{"!x"}, {"!w"}, {"!b"}},
                         "%y = nn.conv %0, %1 " + attributes(test) +
                             " : (!x, !w) -> !y\n"
                             "%f = nn.broadcast %2 {dims = array<i64: 1>} : (!b) -> !y\n"
                             "%z = nn.mul %y, %f : (!y, !y) -> !y\n"
                             "%s = nn.reduce_sum %y {dims = array<i64: " +
                             test.places() + ">} : (!y) -> !s",
                         {{"%y", "!y"}, {"%z", "!y"}, {"%s", "!s"}});
    runner.check(2 * ulpsOf(element), 1e-4);
  });
}

// A bias is added before the sum is rounded.
TEST(CodegenDepthwise, Epilogue) {
  forEachCase([](const Case &test, const char *element) {
    ClusterRunner runner(aliases(test, element), {{"!x"}, {"!w"}, {"!b"}},
                         "%y = nn.conv %0, %1, %2 " + attributes(test, ", relu") +
                             " : (!x, !w, !b) -> !y",
                         {{"%y", "!y"}});
    runner.check(ulpsOf(element), 1e-5);
  });
}

TEST(CodegenDepthwise, DataGradient) {
  forEachCase([](const Case &test, const char *element) {
    Aliases types = aliases(test, element);
    types.emplace_back("!m", tensor(test.x, "i1", test.layout));
    ClusterRunner runner(types, {{"!y"}, {"!w"}, {"!x"}},
                         "%zero = nn.constant dense<0.0> : !x\n"
                         "%g = nn.conv_grad_data %0, %1 " +
                             attributes(test) +
                             " : (!y, !w) -> !x\n"
                             "%m = nn.compare gt %2, %zero : (!x, !x) -> !m\n"
                             "%d = nn.select %m, %g, %zero : (!m, !x, !x) -> !x\n"
                             "%s = nn.reduce_sum %d {dims = array<i64: " +
                             test.places() + ">} : (!x) -> !b",
                         {{"%d", "!x"}, {"%s", "!b"}});
    runner.check(ulpsOf(element), 1e-4);
  });
}

// The same sum, with a bias.
TEST(CodegenDepthwise, Transposed) {
  forEachCase([](const Case &test, const char *element) {
    ClusterRunner runner(aliases(test, element), {{"!y"}, {"!w"}, {"!b"}},
                         "%x = nn.conv_transpose %0, %1, %2 " + attributes(test, ", relu") +
                             " : (!y, !w, !b) -> !x",
                         {{"%x", "!x"}});
    runner.check(ulpsOf(element), 1e-5);
  });
}

// In f32 whatever it adds up.
TEST(CodegenDepthwise, FilterGradient) {
  forEachCase([](const Case &test, const char *element) {
    Aliases types = aliases(test, element);
    types.emplace_back("!g", tensor(test.weight, "f32", test.filters));
    ClusterRunner runner(types, {{"!x"}, {"!y"}},
                         "%g = nn.conv_grad_filter %0, %1 " + attributes(test) +
                             " : (!x, !y) -> !g",
                         {{"%g", "!g"}});
    runner.check(64, 1e-4);
  });
}

// Parts of the sums come from several items, whose last ones may be shorter.
TEST(CodegenDepthwise, FilterGradientInParts) {
  for (const Case &test : {Case{"3x96x30x30", "3x96x30x30", "96x1x3x3", "1, 1", "1, 1", "1, 1",
                                "1, 1", "nhwc", "hwcn"},
                           Case{"2x40x37x41", "2x40x19x21", "40x1x5x5", "2, 2", "2, 2", "2, 2",
                                "1, 1", "nhwc", "hwcn"},
                           Case{"2x528x13x13", "2x528x13x13", "528x1x3x3", "1, 1", "1, 1", "1, 1",
                                "1, 1", "nhwc", "hwcn"}}) {
    SCOPED_TRACE(test.x);
    ClusterRunner runner(aliases(test, "bf16"), {{"!x"}, {"!y"}},
                         "%g = nn.conv_grad_filter %0, %1 " + attributes(test) +
                             " : (!x, !y) -> !w",
                         {{"%g", "!w"}});
    ASSERT_EQ(runner.plan().stages.size(), 2u);
    runner.check(0x1p16, 1e-3);
  }
}

// x may be some channels, rows and columns of a larger tensor.
TEST(CodegenDepthwise, OfASlice) {
  const Case &test = cases[0];
  Aliases types = aliases(test, "bf16");
  types.emplace_back("!t", tensor("2x32x8x9", "bf16", "nhwc"));
  std::string slice = "%x = nn.slice %0 {start = array<i64: 0, 8, 1, 0>, size = array<i64: 2, 16, "
                      "6, 8>} : (!t) -> !x\n";
  ClusterRunner forward(types, {{"!t"}, {"!w"}},
                        slice + "%y = nn.conv %x, %1 " + attributes(test) + " : (!x, !w) -> !y",
                        {{"%y", "!y"}});
  forward.check(ulpsOf("bf16"), 1e-5);
  ClusterRunner gradient(types, {{"!t"}, {"!y"}},
                         slice + "%g = nn.conv_grad_filter %x, %1 " + attributes(test) +
                             " : (!x, !y) -> !w",
                         {{"%g", "!w"}});
  gradient.check(ulpsOf("bf16"), 1e-4);
}

//===- What is refused ------------------------------------------------------------------------===//

static std::string refusalOf(const Aliases &types, const std::string &arguments,
                             const std::string &ops, const std::string &result) {
  mlir::MLIRContext context;
  context.loadDialect<nn::NNDialect, exec::ExecDialect>();
  std::string text, said;
  for (auto &[name, type] : types)
    text += name + " = " + type + "\n";
  text += "nn.model @m attributes {stage = \"exec\"} {\nexec.cluster @c {\n^bb0(" + arguments +
          "):\n" + ops + "\nnn.yield " + result + "\n}\n}\n";
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    said = diagnostic.str();
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(module) << said;
  auto model = *module->getOps<nn::ModelOp>().begin();
  auto cluster = *model.getOps<exec::ClusterOp>().begin();
  auto plan = planGeneratedKernel(cluster.getBody().front(), rt::CpuTarget::loops());
  EXPECT_TRUE(mlir::failed(plan));
  return said;
}

TEST(CodegenDepthwise, FiltersOfSeveralChannelsAreRefused) {
  std::string said = refusalOf(
      {{"!x", tensor("2x16x6x8", "f32", "nhwc")}, {"!w", tensor("16x2x1x1", "f32", "nhwc")}},
      "%x: !x, %w: !w",
      "%y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding_low = array<i64: "
      "0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, "
      "groups = 8} : (!x, !w) -> !x",
      "%y : !x");
  EXPECT_NE(said.find("unless each channel has a filter of its own"), std::string::npos) << said;
}

TEST(CodegenDepthwise, WhatIsComputedInTheClusterIsNotGatheredFrom) {
  EXPECT_NE(refusalOf(aliases(cases[0], "f32"), "%0: !x, %w: !w",
                      "%x = nn.relu %0 : (!x) -> !x\n%y = nn.conv %x, %w " + attributes(cases[0]) +
                          " : (!x, !w) -> !y",
                      "%y : !y")
                .find("operands that are computed in its cluster"),
            std::string::npos);
}
