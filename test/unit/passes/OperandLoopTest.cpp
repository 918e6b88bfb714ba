// Copies and sums of many operands, which one body does for any number of them.

#include "test/unit/passes/ClusterRunner.h"

#include "runtime/core/HostFeatures.h"

#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <gtest/gtest.h>

using namespace dlc;
using namespace dlc::test;

namespace {
/// What a cluster's text is made of.
struct Operands {
  std::vector<Argument> arguments;
  std::string ops;
  std::string result; // its type
};
} // namespace

static std::string typeOf(int channels, const std::string &rest) {
  return "tensor<2x" + std::to_string(channels) + "x" + rest + ">";
}

static std::string list(int count, const std::string &text) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all += (i ? ", " : "") + text;
  return all;
}

/// Operands of one type, one after the other.
static Operands joined(int count, int channels, const std::string &rest) {
  std::string type = typeOf(channels, rest), names;
  Operands made{std::vector<Argument>(count, {type}), "", typeOf(count * channels, rest)};
  for (int i = 0; i < count; ++i)
    names += (i ? ", %" : "%") + std::to_string(i);
  made.ops = "%y = nn.concat " + names + " {dim = 1 : i64} : (" + list(count, type) + ") -> " +
             made.result;
  return made;
}

/// The last channels of operands that have more of them the later they come.
static Operands sumOfSlices(int count, int channels, const std::string &spatial,
                            const std::string &rest) {
  std::string type = typeOf(channels, spatial + rest), parts, sums;
  Operands made{{}, "", type};
  for (int i = 0; i < count; ++i) {
    std::string number = std::to_string(i), from = typeOf(channels * (i + 2), spatial + rest);
    std::string extents = spatial.substr(0, spatial.rfind('x'));
    std::replace(extents.begin(), extents.end(), 'x', ',');
    made.arguments.push_back({from});
    parts += "%p" + number + " = nn.slice %" + number + " {start = array<i64: 0, " +
             std::to_string(channels * (i + 1)) + ", 0, 0>, size = array<i64: 2, " +
             std::to_string(channels) + ", " + extents + ">} : (" + from + ") -> " + type + "\n";
    if (i > 0)
      sums += (i + 1 == count ? "%y" : "%s" + number) + " = nn.add " +
              (i == 1 ? "%p0" : "%s" + std::to_string(i - 1)) + ", %p" + number + " : (" + type +
              ", " + type + ") -> " + type + "\n";
  }
  made.ops = parts + sums;
  return made;
}

static std::string besideText(const std::string &name, const Operands &operands) {
  std::string arguments;
  for (size_t i = 0; i < operands.arguments.size(); ++i)
    arguments += (i ? ", %" : "%") + std::to_string(i) + ": " + operands.arguments[i].type;
  return "exec.cluster @" + name + " {\n^bb0(" + arguments + "):\n" + operands.ops +
         "\nnn.yield %y : " + operands.result + "\n}\n";
}

static size_t count(const ClusterRunner &runner, const char *text) {
  return llvm::StringRef(runner.llvmText).count(text);
}

// Blocks of vectors and of operands, and what is left of both.
TEST(OperandLoop, Copies) {
  for (const char *rest : {"8x8xf32", "7x5xf32, #nn.layout<nhwc>", "7x9xf32, #nn.layout<nChw16c>",
                           "9x10xbf16, #nn.layout<nChw16c>", "24x32xf32"})
    for (int operands : {5, 8}) {
      SCOPED_TRACE(std::string(rest) + " " + std::to_string(operands));
      Operands made = joined(operands, 32, rest);
      ClusterRunner runner({}, made.arguments, made.ops, {{"%y", made.result}});
      runner.check(0);
      EXPECT_EQ(count(runner, "@copies_of_operands"), 2u); // of the record and of the body
    }
}

// Terms are added from left to right, each sum rounded.
TEST(OperandLoop, Sums) {
  for (const char *rest : {"f32", "f32, #nn.layout<nChw16c>", "bf16, #nn.layout<nChw16c>", "f64"})
    for (const char *spatial : {"8x8x", "7x16x", "30x20x"}) {
      SCOPED_TRACE(std::string(spatial) + rest);
      Operands made = sumOfSlices(5, 16, spatial, rest);
      ClusterRunner runner({}, made.arguments, made.ops, {{"%y", made.result}});
      EXPECT_EQ(count(runner, "@sum_of_operands"), 2u);
      // The same additions, each in a kernel of its own, are written out.
      std::vector<reference::Tensor> inputs = runner.randomOperands(3), parts;
      auto yield = cast<nn::YieldOp>(runner.cluster().getTerminator());
      llvm::ArrayRef shape = nn::tensorType(yield.getValues()[0]).getShape();
      for (auto [i, input] : llvm::enumerate(inputs)) {
        reference::Tensor &part = parts.emplace_back(shape);
        reference::forEachIndex(part.shape, [&, i = i](llvm::ArrayRef<int64_t> index) {
          llvm::SmallVector<int64_t> from(index);
          from[1] += 16 * static_cast<int64_t>(i + 1);
          part.at(index) = input.at(from);
        });
      }
      ClusterRunner pair({}, {{made.result}, {made.result}},
                         "%y = nn.add %0, %1 : (" + made.result + ", " + made.result + ") -> " +
                             made.result,
                         {{"%y", made.result}});
      EXPECT_EQ(count(pair, "of_operands"), 0u);
      reference::Tensor sum = parts[0];
      for (size_t i = 1; i < parts.size(); ++i)
        sum = pair.run({sum, parts[i]})[0];
      EXPECT_EQ(runner.run(inputs)[0].data, sum.data);
    }
}

// However many there are, and whatever their sizes and loops.
TEST(OperandLoop, OneBodyForAll) {
  Operands made = joined(7, 16, "20x20xf32");
  ClusterRunner runner({}, made.arguments, made.ops, {{"%y", made.result}}, hostCodeTarget(),
                       besideText("other", joined(11, 48, "24x24xf32")) +
                           besideText("sums", sumOfSlices(9, 32, "14x16x", "f32")) +
                           besideText("more", sumOfSlices(12, 16, "4x4x", "f32")));
  runner.check(0);
  EXPECT_EQ(count(runner, "define internal"), 2u);
}

TEST(OperandLoop, AvxTwo) {
  if (!rt::missingFeatures({"avx2", "fma"}).empty())
    GTEST_SKIP() << "this machine has no AVX2";
  CodeTarget target{"x86-64-v3", "", 32};
  for (const Operands &made : {joined(6, 16, "7x8xf32"), sumOfSlices(6, 8, "9x8x", "f32"),
                               sumOfSlices(6, 8, "9x8x", "bf16")}) {
    ClusterRunner runner({}, made.arguments, made.ops, {{"%y", made.result}}, target);
    EXPECT_EQ(count(runner, "define internal"), 1u);
    EXPECT_EQ(count(runner, "of_operands"), 2u);
    runner.check(8, 4e-2);
  }
}

// Few operands; ends that are no whole vectors; an operand twice; another op among the sums.
TEST(OperandLoop, LeavesOthersAsTheyAre) {
  Operands product = sumOfSlices(6, 16, "8x8x", "f32"), twice = sumOfSlices(5, 16, "8x8x", "f32");
  size_t place = product.ops.rfind("nn.add");
  product.ops.replace(place, 6, "nn.mul");
  twice.ops += "%z = nn.add %y, %p0 : (" + twice.result + ", " + twice.result + ") -> " +
               twice.result + "\n";
  for (const auto &[made, result] : {std::pair(joined(4, 16, "8x8xf32"), "%y"),
                                     {joined(6, 20, "7x9xf32, #nn.layout<nChw16c>"), "%y"},
                                     {joined(6, 3, "5x5xf32"), "%y"},
                                     {sumOfSlices(4, 16, "8x8x", "f32"), "%y"},
                                     {sumOfSlices(6, 1, "5x7x", "f32"), "%y"},
                                     {product, "%y"},
                                     {twice, "%z"}}) {
    ClusterRunner runner({}, made.arguments, made.ops, {{result, made.result}});
    runner.check(16, 1e-5);
    EXPECT_EQ(count(runner, "of_operands"), 0u);
  }
}
