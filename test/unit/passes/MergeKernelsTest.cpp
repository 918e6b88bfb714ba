// Kernels that differ in sizes only are one function: what it computes for each of them, against
// the reference evaluator, and which stay apart.

#include "test/unit/passes/ClusterRunner.h"

#include "llvm/ADT/StringRef.h"
#include <functional>
#include <gtest/gtest.h>

using namespace dlc;
using namespace dlc::test;

namespace {
struct Shape {
  int batch, channels, height, width;
};

struct Cluster {
  std::vector<Argument> arguments;
  std::string ops;
  std::vector<std::pair<std::string, std::string>> results;
};

using Make = std::function<Cluster(Shape)>;
} // namespace

static std::string image(Shape shape, const char *element = "f32") {
  std::string text = "tensor<";
  for (int extent : {shape.batch, shape.channels, shape.height, shape.width})
    text += std::to_string(extent) + "x";
  return text + element + ", #nn.layout<nChw16c>>";
}

static std::string row(int64_t elements, const char *element = "f32") {
  return "tensor<" + std::to_string(elements) + "x" + element + ">";
}

static std::string besideText(const std::string &name, const Cluster &cluster) {
  std::string arguments, values, types;
  for (size_t i = 0; i < cluster.arguments.size(); ++i)
    arguments += (i ? ", %" : "%") + std::to_string(i) + ": " + cluster.arguments[i].type;
  for (size_t i = 0; i < cluster.results.size(); ++i) {
    values += (i ? ", " : "") + cluster.results[i].first;
    types += (i ? ", " : "") + cluster.results[i].second;
  }
  return "exec.cluster @" + name + " {\n^bb0(" + arguments + "):\n" + cluster.ops + "\nnn.yield " +
         values + " : " + types + "\n}\n";
}

/// Checks the cluster of each shape while those of the others lie beside it; the number of
/// functions that all of them became.
static size_t checkTogether(const Make &make, const std::vector<Shape> &shapes) {
  size_t bodies = 0;
  for (size_t checked = 0; checked < shapes.size(); ++checked) {
    SCOPED_TRACE(checked);
    std::string beside;
    for (size_t i = 0; i < shapes.size(); ++i)
      if (i != checked)
        beside += besideText("other" + std::to_string(i), make(shapes[i]));
    Cluster cluster = make(shapes[checked]);
    ClusterRunner runner({}, cluster.arguments, cluster.ops, cluster.results, hostCodeTarget(),
                         beside);
    runner.check(4, 1e-3);
    bodies = llvm::StringRef(runner.llvmText).count("define internal");
  }
  return bodies;
}

static Cluster factors(Shape shape) {
  std::string t = image(shape), r = row(shape.channels);
  return {{{t}, {r}},
          "%f = nn.broadcast %1 {dims = array<i64: 1>} : (" + r + ") -> " + t +
              "\n%y = nn.mul %0, %f : (" + t + ", " + t + ") -> " + t,
          {{"%y", t}}};
}

static Cluster sums(Shape shape) {
  std::string t = image(shape), r = row(shape.channels);
  return {{{t}},
          "%y = nn.relu %0 : (" + t + ") -> " + t +
              "\n%s = nn.reduce_sum %y {dims = array<i64: 0, 2, 3>} : (" + t + ") -> " + r,
          {{"%s", r}, {"%y", t}}};
}

static Cluster pooled(Shape shape) {
  Shape half = {shape.batch, shape.channels, shape.height / 2, shape.width / 2};
  std::string t = image(shape), p = image(half), i = image(half, "i8");
  return {{{t}},
          "%y, %i = nn.max_pool %0 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, "
          "padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (" +
              t + ") -> (" + p + ", " + i + ")",
          {{"%y", p}, {"%i", i}}};
}

static Cluster added(Shape shape) {
  std::string r = row(int64_t(shape.batch) * shape.channels * shape.height * shape.width);
  return {{{r}, {r}}, "%y = nn.add %0, %1 : (" + r + ", " + r + ") -> " + r, {{"%y", r}}};
}

static const std::vector<Shape> shapes = {{1, 32, 24, 24}, {2, 48, 28, 28}, {3, 32, 32, 20}};

// One image is no loop over images.
TEST(MergeKernels, FactorsOfChannels) { EXPECT_EQ(checkTogether(factors, shapes), 2U); }

TEST(MergeKernels, Pooling) { EXPECT_EQ(checkTogether(pooled, shapes), 2U); }

// The partial results; their sum is a short loop, so each stays apart.
TEST(MergeKernels, Sums) {
  EXPECT_EQ(checkTogether(sums, {{2, 32, 32, 32}, {3, 48, 32, 32}, {4, 32, 32, 48}}), 4U);
}

TEST(MergeKernels, Rows) {
  EXPECT_EQ(checkTogether(added, {{1, 1, 1, 1600}, {1, 1, 1, 4800}, {1, 1, 1, 6400}}), 1U);
}

// Two vectors are no loop, four are a short one, whose number of iterations stays known.
TEST(MergeKernels, LeavesShortLoopsApart) {
  EXPECT_EQ(checkTogether(added, {{1, 1, 1, 32}, {1, 1, 1, 64}, {1, 1, 1, 1600}}), 3U);
}

// Equal ones need no sizes.
TEST(MergeKernels, EqualKernels) {
  EXPECT_EQ(checkTogether(factors, {shapes[0], shapes[0], shapes[0]}), 1U);
}
