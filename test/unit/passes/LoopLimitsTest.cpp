// Limits other than the CPU's: plans follow them, and kernels planned with them compute the same.

#include "passes/codegen/ProductPlan.h"
#include "test/backend/TestPlanner.h"
#include "test/unit/passes/ClusterRunner.h"

#include <gtest/gtest.h>

using namespace dlc;
using namespace dlc::test;

static rt::LoopLimits smallLimits() { return TestPlanner(TestPlanner::small).target().loops; }

/// A cluster of one argument %0 : !t and one result %y.
static ClusterRunner runnerOf(const std::string &type, const std::string &op,
                              const std::string &result, const rt::LoopLimits &limits) {
  return ClusterRunner({{"!t", type}, {"!y", result}}, {{"!t"}}, op, {{"%y", "!y"}},
                       hostCodeTarget(), "", limits);
}

TEST(LoopLimits, ItemsAndChunks) {
  rt::LoopLimits limits = smallLimits();
  auto stage = [&] {
    return runnerOf("tensor<64x1024xf32>", "%y = nn.relu %0 : (!t) -> !y", "tensor<64x1024xf32>",
                    limits)
        .plan()
        .stages[0];
  };
  EXPECT_EQ(stage().extent, 256); // of 256 elements
  EXPECT_EQ(stage().chunk, 16);   // at most 16 of them
  limits.mostChunks = 256;
  EXPECT_EQ(stage().chunk, 2); // 4 KiB, of 8 bytes an element
  limits.chunkBytes *= 4;
  EXPECT_EQ(stage().chunk, 8);
  limits.itemElements = 1024;
  EXPECT_EQ(stage().extent, 64);
}

// 1008 is 6 times 168 and 7 times 144; 168 is no multiple of 16.
TEST(LoopLimits, Lanes) {
  rt::LoopLimits limits = smallLimits();
  limits.itemElements = 200;
  auto items = [&] {
    return runnerOf("tensor<1008xf32>", "%y = nn.relu %0 : (!t) -> !y", "tensor<1008xf32>", limits)
        .plan()
        .stages[0]
        .extent;
  };
  EXPECT_EQ(items(), 6);
  limits.vectorLanes = 16;
  EXPECT_EQ(items(), 7);
}

// 2012 is 4 times a prime: the last item is shorter, unless items of 4 elements are large enough.
TEST(LoopLimits, LeastItem) {
  rt::LoopLimits limits = smallLimits();
  auto items = [&] {
    return runnerOf("tensor<2012xf32>", "%y = nn.relu %0 : (!t) -> !y", "tensor<2012xf32>", limits)
        .plan()
        .stages[0]
        .extent;
  };
  EXPECT_EQ(items(), 8);
  limits.leastItemElements = 4;
  EXPECT_EQ(items(), 503);
}

TEST(LoopLimits, PartialResults) {
  rt::LoopLimits limits = smallLimits();
  auto scratch = [&] {
    return runnerOf("tensor<64x64x64xf32>",
                    "%y = nn.reduce_sum %0 {dims = array<i64: 0, 2>} : (!t) -> !y",
                    "tensor<64xf32>", limits)
        .plan()
        .scratch;
  };
  ASSERT_EQ(scratch().size(), 1u);
  EXPECT_EQ(scratch()[0].getNumElements(), 64 * 64); // of each of the first 64
  limits.manyKept = 64;
  EXPECT_TRUE(scratch().empty());
}

TEST(LoopLimits, MostPartials) {
  rt::LoopLimits limits = smallLimits();
  auto partials = [&](int64_t most) {
    limits.mostPartials = most;
    return runnerOf("tensor<4096xf32>", "%y = nn.reduce_sum %0 {dims = array<i64: 0>} : (!t) -> !y",
                    "tensor<f32>", limits)
        .plan()
        .stages[0]
        .extent;
  };
  EXPECT_EQ(partials(4), 4);
  EXPECT_EQ(partials(16), 16);
}

// Sums of columns: items are some columns of some rows, and what combines them has items, too.
TEST(LoopLimits, Columns) {
  rt::LoopLimits limits = smallLimits();
  limits.manyKept = 4096;
  auto stages = [&] {
    return runnerOf("tensor<64x120xf32>",
                    "%y = nn.reduce_sum %0 {dims = array<i64: 0>} : (!t) -> !y", "tensor<120xf32>",
                    limits)
        .plan()
        .stages;
  };
  limits.reducedColumns = limits.combinedColumns = 120;
  auto whole = stages();
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[0].tile, (decltype(whole[0].tile){16, 120}));
  EXPECT_EQ(whole[1].tile.back(), 120);
  limits.reducedColumns = 64;
  EXPECT_EQ(stages()[0].tile, (decltype(whole[0].tile){32, 60})); // 60 is a multiple of 4
  limits.combinedColumns = 16;
  EXPECT_EQ(stages()[1].tile, (decltype(whole[0].tile){2, 12}));
  EXPECT_EQ(stages()[1].extent, 10);
}

// Of an operand that lies across, an item has runs of 8 at least, so that it may be brought through
// shared memory, or all where no run is aligned.
TEST(LoopLimits, SharedRuns) {
  rt::LoopLimits limits = smallLimits();
  auto tile = [&](const std::string &shape) {
    return runnerOf("tensor<" + shape + "xf32, #nn.layout<nhwc>>",
                    "%y = nn.reorder %0 : (!t) -> !y", "tensor<" + shape + "xf32>", limits)
        .plan()
        .stages[0]
        .tile;
  };
  EXPECT_EQ(tile("2x64x16x16"), (decltype(tile("")){1, 8, 32}));
  EXPECT_EQ(tile("2x18x16x16"), (decltype(tile("")){1, 18, 8}));
  limits.sharedRun = 0;
  EXPECT_EQ(tile("2x64x16x16"), (decltype(tile("")){1, 1, 256}));
}

// Where kept elements are enumerated.
TEST(LoopLimits, KeptItems) {
  rt::LoopLimits limits = smallLimits();
  auto items = [&](int64_t most) {
    limits.keptItemElements = most;
    return runnerOf("tensor<8x1024xf32>",
                    "%y = nn.reduce_sum %0 {dims = array<i64: 0>} : (!t) -> !y", "tensor<1024xf32>",
                    limits)
        .plan()
        .stages[0]
        .extent;
  };
  EXPECT_EQ(items(32), 32);
  EXPECT_EQ(items(128), 8);
}

// Terms whose sum is exact in f64 alone.
TEST(LoopLimits, Sums) {
  rt::LoopLimits limits = smallLimits();
  auto sum = [&](artifact::DType type) {
    limits.sums = type;
    ClusterRunner runner =
        runnerOf("tensor<4096xf32>", "%y = nn.reduce_sum %0 {dims = array<i64: 0>} : (!t) -> !y",
                 "tensor<f32>", limits);
    EXPECT_EQ(runner.plan().scratch[0].getElementType().isF64(), type == artifact::DType::F64);
    std::vector<reference::Tensor> operands = runner.randomOperands(1);
    llvm::fill(operands[0].data, 0x1p-26);
    operands[0].data[0] = 1;
    return runner.run(operands)[0].data[0];
  };
  EXPECT_EQ(sum(artifact::DType::F64), static_cast<float>(1 + 4095 * 0x1p-26));
  EXPECT_NE(sum(artifact::DType::F32), static_cast<float>(1 + 4095 * 0x1p-26));
}

TEST(LoopLimits, Products) {
  rt::LoopLimits limits = smallLimits();
  for (bool transposed : {true, false}) {
    std::string b = transposed ? "tensor<500x96xf32>" : "tensor<96x500xf32>";
    ClusterRunner runner({{"!a", "tensor<8x96xf32>"}, {"!b", b}, {"!y", "tensor<8x500xf32>"}},
                         {{"!a"}, {"!b"}},
                         "%y = nn.matmul %0, %1 " +
                             std::string(transposed ? "{transpose_b} " : "") + ": (!a, !b) -> !y",
                         {{"%y", "!y"}}, hostCodeTarget(), "", limits);
    GeneratedStage stage = runner.plan().stages[0];
    EXPECT_EQ(stage.extent, transposed ? 42 : 3); // of 12 and of 192 columns
    EXPECT_EQ(stage.chunk, transposed ? 21 : 2);  // two chunks
    runner.check(64, 1e-3);
    auto product = cast<nn::MatmulOp>(runner.cluster().front());
    limits.products.mostRows = 7;
    EXPECT_FALSE(planProduct(product, limits.products));
    limits.products.mostRows = 8;
  }
}

TEST(LoopLimits, KernelsComputeTheSame) {
  rt::LoopLimits exact = smallLimits();
  exact.sums = artifact::DType::F64;
  for (auto [shape, layout] : {std::pair("2x5x7x9", ""),
                               {"2x20x33x17", ", #nn.layout<nhwc>"},
                               {"2x20x7x9", ", #nn.layout<nChw16c>"},
                               {"2x24x3x5", ", #nn.layout<nChw8c>"},
                               {"3x40x1009x1", ""},
                               {"1x1x1x40009", ""},
                               {"3x300x20x4", ", #nn.layout<nhwc>"}}) {
    SCOPED_TRACE(std::string(shape) + layout);
    llvm::StringRef rest = shape;
    std::string batch = rest.split('x').first.str(), row = rest.split('x').second.str();
    std::string channels = llvm::StringRef(row).split('x').first.str();
    Aliases aliases{{"!t", std::string("tensor<") + shape + "xf32" + layout + ">"},
                    {"!c", "tensor<" + channels + "xf32>"},
                    {"!r", "tensor<" + row + "xf32>"}};
    ClusterRunner pointwise(aliases, {{"!t"}, {"!c"}},
                            R"(%a = nn.broadcast %1 {dims = array<i64: 1>} : (!c) -> !t
                               %p = nn.mul %0, %a : (!t, !t) -> !t
                               %e = nn.exp %p : (!t) -> !t)",
                            {{"%e", "!t"}}, hostCodeTarget(), "", smallLimits());
    pointwise.check(4, 1e-6);
    ClusterRunner channelSums(aliases, {{"!t"}},
                              R"(%p = nn.mul %0, %0 : (!t, !t) -> !t
                                 %s = nn.reduce_sum %0 {dims = array<i64: 0, 2, 3>} : (!t) -> !c
                                 %q = nn.reduce_sum %p {dims = array<i64: 0, 2, 3>} : (!t) -> !c)",
                              {{"%s", "!c"}, {"%q", "!c"}}, hostCodeTarget(), "", exact);
    channelSums.check(4, 1e-5);
    ClusterRunner rowMaxima(aliases, {{"!t"}},
                            "%m = nn.reduce_max %0 {dims = array<i64: 0>} : (!t) -> !r",
                            {{"%m", "!r"}}, hostCodeTarget(), "", smallLimits());
    rowMaxima.check(0);
  }
}

TEST(LoopLimits, JoinedOperands) {
  ClusterRunner runner({{"!a", "tensor<2x20x9x7xf32>"}, {"!y", "tensor<2x40x9x7xf32>"}},
                       {{"!a"}, {"!a"}},
                       R"(%r = nn.relu %1 : (!a) -> !a
                          %y = nn.concat %0, %r {dim = 1 : i64} : (!a, !a) -> !y)",
                       {{"%y", "!y"}}, hostCodeTarget(), "", smallLimits());
  EXPECT_GT(runner.plan().stages[0].extent, 1);
  runner.check(0);
}

TEST(LoopLimits, ContradictionsAreFound) {
  EXPECT_TRUE(smallLimits().areConsistent());
  rt::LoopLimits narrow = smallLimits(), crooked = smallLimits(), none = smallLimits();
  narrow.leastItemElements = narrow.vectorLanes - 1;
  crooked.rangeMultiple = 48;
  none.mostChunks = 0;
  for (const rt::LoopLimits &limits : {narrow, crooked, none})
    EXPECT_FALSE(limits.areConsistent());
}
