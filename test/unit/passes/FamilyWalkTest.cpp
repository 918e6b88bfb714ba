// Following a change of one op's family leaves what a walk from the start finds.

#include "passes/planning/FamilyWalk.h"
#include "test/backend/TestPlanner.h"
#include "test/unit/passes/RandomNetwork.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace dlc;

namespace {

constexpr LayoutFamily families[] = {LayoutFamily::Plain, LayoutFamily::ChannelsLast,
                                     LayoutFamily::Blocked};

class FamilyWalkTest : public testing::TestWithParam<unsigned> {
protected:
  FamilyWalkTest()
      : module(mlir::parseSourceString<mlir::ModuleOp>(RandomNetwork(GetParam()).text(),
                                                       context.get())),
        model(*module->getOps<nn::ModelOp>().begin()),
        program(*model.getBody().getOps<nn::ProgramOp>().begin()) {
    for (auto assign : program.getBody().getOps<nn::AssignOp>())
      filterGradients[assign.getValue()] = assign.getVariable();
  }

  FamilyWalkContext contextWith(const llvm::StringMap<rt::Layout> *variables) {
    return {kernels, LayoutFamily::Blocked, flips, filterGradients, copies, variables};
  }

  /// Compares a plan with that of a walk from the start.
  void expectSame(const FamilyWalk &walk, const LayoutPlan &plan, bool weightsAreFree) {
    LayoutPlan expected;
    expected.variables = plan.variables;
    FamilyWalk whole(contextWith(weightsAreFree ? nullptr : &expected.variables), program,
                     expected);
    ASSERT_TRUE(whole.run()) << whole.reason;
    EXPECT_TRUE(plan.values == expected.values);
    EXPECT_TRUE(plan.operands == expected.operands);
    EXPECT_TRUE(plan.flexible == expected.flexible);
    EXPECT_DOUBLE_EQ(walk.nanoseconds(), whole.nanoseconds());
    EXPECT_TRUE(walk.wishes() == whole.wishes());
    for (const auto &[operand, layout] : plan.operands)
      EXPECT_FALSE(weightsAreFree && operand->get().getDefiningOp<nn::ReadOp>());
  }

  llvm::StringMap<rt::Layout> rowMajorVariables() {
    llvm::StringMap<rt::Layout> layouts;
    for (auto variable : model.getBody().getOps<nn::VariableOp>())
      layouts[variable.getSymName()] = rt::Layout::rowMajor(4);
    return layouts;
  }

  /// Changes ops' families at random.
  void expectUpdatesAsAWholeWalk(bool weightsAreFree) {
    std::mt19937 random(GetParam());
    std::vector<mlir::Operation *> ops;
    for (mlir::Operation &op : program.getBody().front())
      ops.push_back(&op);
    LayoutPlan plan;
    plan.variables = rowMajorVariables();
    FamilyWalk walk(contextWith(weightsAreFree ? nullptr : &plan.variables), program, plan);
    ASSERT_TRUE(walk.run()) << walk.reason;
    for (int change = 0; change < 20; ++change) {
      mlir::Operation *op = ops[random() % ops.size()];
      flips[op] = families[random() % 3];
      // Weights follow wishes, as the solver lets them, or do not.
      llvm::StringMap<rt::Layout> former = plan.variables;
      if (change % 2)
        plan.variables = change % 4 == 1 ? walk.wishes() : rowMajorVariables();
      walk.update(op, former);
      expectSame(walk, plan, weightsAreFree);
    }
  }

  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module;
  nn::ModelOp model;
  nn::ProgramOp program;
  TargetKernels kernels{std::make_unique<TestPlanner>(), {"test:rules"}};
  LayoutFlips flips;
  llvm::DenseMap<mlir::Value, llvm::StringRef> filterGradients;
  llvm::StringMap<llvm::StringRef> copies;
};

TEST_P(FamilyWalkTest, UpdatesAsAWholeWalkWould) { expectUpdatesAsAWholeWalk(false); }
TEST_P(FamilyWalkTest, UpdatesAsAWholeWalkWouldWithFreeWeights) { expectUpdatesAsAWholeWalk(true); }

/// Two convolutions want a rounded value blocked: it is moved once, in 16 bits.
TEST(FamilyWalk, WhatIsMadeAnewIsPaidWhereItComesFrom) {
  auto context = makeContext();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    nn.model @m attributes {stage = "train"} {
      nn.program @predict(%x: tensor<2x32x8x8xbf16> {nn.input = "x"}, %w: tensor<32x32x1x1xf32> {nn.input = "w"}) {
        %a = nn.cast %x : (tensor<2x32x8x8xbf16>) -> tensor<2x32x8x8xf32>
        %b = nn.cast %x : (tensor<2x32x8x8xbf16>) -> tensor<2x32x8x8xf32>
        %y = nn.conv %a, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>,
          padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
          : (tensor<2x32x8x8xf32>, tensor<32x32x1x1xf32>) -> tensor<2x32x8x8xf32>
        %z = nn.conv %b, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>,
          padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
          : (tensor<2x32x8x8xf32>, tensor<32x32x1x1xf32>) -> tensor<2x32x8x8xf32>
      }
    })",
                                                        context.get());
  nn::ModelOp model = *module->getOps<nn::ModelOp>().begin();
  TargetKernels kernels{std::make_unique<TestPlanner>(), {"test:rules"}};
  LayoutFlips flips;
  LayoutPlan plan;
  llvm::StringMap<rt::Layout> variables;
  llvm::DenseMap<mlir::Value, llvm::StringRef> filterGradients;
  llvm::StringMap<llvm::StringRef> copies;
  FamilyWalk walk({kernels, LayoutFamily::Blocked, flips, filterGradients, copies, &variables},
                  *model.getBody().getOps<nn::ProgramOp>().begin(), plan);
  ASSERT_TRUE(walk.run()) << walk.reason;
  constexpr uint64_t values = 2 * 32 * 8 * 8, weights = 32 * 32;
  double casts = 2 * (kernels.generatedCost(2 * 4 * values, 0) - kernels.generatedCost(0, 0));
  double moves = kernels.generatedCost(2 * 2 * values, 0) + // from and to
                 kernels.generatedCost(2 * 4 * weights, 0);
  double convolutions = 2 * kernels.generatedCost(4 * (2 * values + weights), 2 * 32 * values);
  EXPECT_DOUBLE_EQ(walk.nanoseconds(), casts + moves + convolutions);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FamilyWalkTest, testing::Range(0U, 30U));

} // namespace
