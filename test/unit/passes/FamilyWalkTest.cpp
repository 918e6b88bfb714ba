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
        program(*model.getBody().getOps<nn::ProgramOp>().begin()) {}

  FamilyWalkContext contextWith(const llvm::StringMap<rt::Layout> *variables) {
    return {planner, rt::Math::Fast,  1,      LayoutFamily::Blocked,
            flips,   filterGradients, copies, variables};
  }

  /// Compares a plan with that of a walk from the start.
  void expectSame(const FamilyWalk &walk, const LayoutPlan &plan) {
    LayoutPlan expected;
    expected.variables = plan.variables;
    FamilyWalk whole(contextWith(&expected.variables), program, expected);
    ASSERT_TRUE(whole.run()) << whole.reason;
    EXPECT_TRUE(plan.values == expected.values);
    EXPECT_TRUE(plan.operands == expected.operands);
    EXPECT_TRUE(plan.flexible == expected.flexible);
    EXPECT_DOUBLE_EQ(walk.nanoseconds(), whole.nanoseconds());
    EXPECT_TRUE(walk.wishes() == whole.wishes());
  }

  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module;
  nn::ModelOp model;
  nn::ProgramOp program;
  TestPlanner planner;
  LayoutFlips flips;
  llvm::DenseMap<mlir::Value, llvm::StringRef> filterGradients;
  llvm::StringMap<llvm::StringRef> copies;
};

TEST_P(FamilyWalkTest, UpdatesAsAWholeWalkWould) {
  std::mt19937 random(GetParam());
  std::vector<mlir::Operation *> ops;
  for (mlir::Operation &op : program.getBody().front())
    ops.push_back(&op);
  LayoutPlan plan;
  FamilyWalk walk(contextWith(&plan.variables), program, plan);
  ASSERT_TRUE(walk.run()) << walk.reason;
  for (int change = 0; change < 20; ++change) {
    mlir::Operation *op = ops[random() % ops.size()];
    flips[op] = families[random() % 3];
    // Weights follow wishes, as the solver lets them.
    llvm::StringMap<rt::Layout> former = plan.variables;
    if (change % 2)
      plan.variables = walk.wishes();
    walk.update(op, former);
    expectSame(walk, plan);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, FamilyWalkTest, testing::Range(0U, 30U));

} // namespace
