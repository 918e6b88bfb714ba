// What other passes learn about a cluster: stages and scratch, and which memory may be shared.

#include "test/unit/passes/ClusterRunner.h"

#include <gtest/gtest.h>

using namespace dlc;
using namespace dlc::test;

static bool canShare(ClusterRunner &runner, unsigned operand, unsigned result) {
  return llvm::is_contained(runner.plan().shares, std::pair(operand, result));
}

TEST(GeneratedKernels, PointwiseIsOneStage) {
  ClusterRunner runner({{"!t", "tensor<64x1024xf32>"}}, {{"!t"}, {"!t"}},
                       "%y = nn.add %0, %1 : (!t, !t) -> !t", {{"%y", "!t"}});
  GeneratedKernel kernel = runner.plan();
  ASSERT_EQ(kernel.stages.size(), 1u);
  EXPECT_TRUE(kernel.scratch.empty());
  const GeneratedStage &stage = kernel.stages[0];
  EXPECT_EQ(stage.extent, 8); // items of 8192 elements
  EXPECT_EQ(llvm::ArrayRef(stage.buffers), llvm::ArrayRef<unsigned>({0, 1, 2}));
  EXPECT_EQ(llvm::ArrayRef(stage.access),
            llvm::ArrayRef({exec::Access::Read, exec::Access::Read, exec::Access::Write}));
  EXPECT_EQ(stage.bytes, 3u * 65536 * 4);
  EXPECT_EQ(stage.flops, 65536u);
}

TEST(GeneratedKernels, ReductionOverManyElementsHasPartialSums) {
  ClusterRunner runner(
      {{"!t", "tensor<4x16x64x64xf32>"}}, {{"!t"}},
      "%s = nn.reduce_sum %0 {dims = array<i64: 0, 2, 3>} : (!t) -> tensor<16xf32>",
      {{"%s", "tensor<16xf32>"}});
  GeneratedKernel kernel = runner.plan();
  ASSERT_EQ(kernel.stages.size(), 2u);
  ASSERT_EQ(kernel.scratch.size(), 1u);
  EXPECT_TRUE(kernel.scratch[0].getElementType().isF64());
  EXPECT_EQ(kernel.scratch[0].getNumElements(), 4 * 16);
  EXPECT_EQ(llvm::ArrayRef(kernel.stages[0].buffers), llvm::ArrayRef<unsigned>({0, 2}));
  EXPECT_EQ(llvm::ArrayRef(kernel.stages[1].buffers), llvm::ArrayRef<unsigned>({2, 1}));
}

// A prime number of elements is work for many threads, too; what a stage does is counted exactly.
TEST(GeneratedKernels, ExtentsWithoutDivisorsAreManyItems) {
  ClusterRunner runner({{"!t", "tensor<1000003xf32>"}}, {{"!t"}, {"!t"}},
                       "%y = nn.add %0, %1 : (!t, !t) -> !t", {{"%y", "!t"}});
  GeneratedKernel kernel = runner.plan();
  ASSERT_EQ(kernel.stages.size(), 1u);
  EXPECT_EQ(kernel.stages[0].extent, 123); // of 8192 elements, the last one of 579
  EXPECT_EQ(kernel.stages[0].bytes, 3u * 1000003 * 4);
  EXPECT_EQ(kernel.stages[0].flops, 1000003u);
  EXPECT_TRUE(canShare(runner, 0, 0));
  runner.check(1);
}

TEST(GeneratedKernels, RowsNeedNoPartialSums) {
  ClusterRunner runner({{"!t", "tensor<512x100xf32>"}}, {{"!t"}},
                       "%s = nn.reduce_sum %0 {dims = array<i64: 1>} : (!t) -> tensor<512xf32>",
                       {{"%s", "tensor<512xf32>"}});
  EXPECT_EQ(runner.plan().stages.size(), 1u);
}

TEST(GeneratedKernels, ElementwiseMayBeInPlace) {
  ClusterRunner runner({{"!t", "tensor<8x8xf32>"}, {"!h", "tensor<8x8xf64>"}},
                       {{"!t"}, {"tensor<8xf32>"}},
                       R"(%b = nn.broadcast %1 {dims = array<i64: 0>} : (tensor<8xf32>) -> !t
                          %y = nn.add %0, %b : (!t, !t) -> !t
                          %w = nn.cast %y : (!t) -> !h)",
                       {{"%y", "!t"}, {"%w", "!h"}});
  EXPECT_TRUE(canShare(runner, 0, 0));
  EXPECT_FALSE(canShare(runner, 1, 0)); // read for a whole row
  EXPECT_FALSE(canShare(runner, 0, 1)); // another type
}

// A result must not overwrite what other iterations still read.
TEST(GeneratedKernels, MovedElementsAreNotInPlace) {
  ClusterRunner transposed({{"!t", "tensor<8x8xf32>"}}, {{"!t"}},
                           R"(%x = nn.transpose %0 {permutation = array<i64: 1, 0>} : (!t) -> !t
                              %y = nn.add %0, %x : (!t, !t) -> !t)",
                           {{"%y", "!t"}});
  EXPECT_FALSE(canShare(transposed, 0, 0));
  ClusterRunner reduced({{"!t", "tensor<8xf32>"}}, {{"!t"}},
                        "%y = nn.reduce_sum %0 {dims = array<i64>} : (!t) -> !t", {{"%y", "!t"}});
  EXPECT_FALSE(canShare(reduced, 0, 0));
  ClusterRunner joined(
      {{"!t", "tensor<1x8xf32>"}}, {{"!t"}},
      R"(%s = nn.slice %0 {start = array<i64: 0, 4>, size = array<i64: 1, 4>} : (!t) -> tensor<1x4xf32>
                          %y = nn.concat %s, %s {dim = 1 : i64} : (tensor<1x4xf32>, tensor<1x4xf32>) -> !t)",
      {{"%y", "!t"}});
  EXPECT_FALSE(canShare(joined, 0, 0));
}

// Objects that are loaded at the same time, one after the other with the same descriptor, are
// different objects: dlopen takes files of one name for one object.
TEST(GeneratedKernels, LoadedCodeIsItsOwn) {
  Aliases aliases{{"!t", "tensor<8xf32>"}};
  std::vector<std::pair<std::string, std::string>> results{{"%y", "!t"}};
  ClusterRunner sum(aliases, {{"!t"}, {"!t"}}, "%y = nn.add %0, %1 : (!t, !t) -> !t", results);
  ClusterRunner negation(aliases, {{"!t"}}, "%y = nn.neg %0 : (!t) -> !t", results);
  ASSERT_NE(&sum.kernel(0), &negation.kernel(0));
  sum.check(1);
  negation.check(0);
}
