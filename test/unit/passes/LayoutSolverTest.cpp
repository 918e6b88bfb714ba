// Properties of layout assignment on random networks, and the choice between families.

#include "passes/planning/LayoutSolver.h"
#include "passes/Passes.h"
#include "test/backend/TestPlanner.h"
#include "test/unit/passes/RandomNetwork.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace dlc;
using rt::Layout;

namespace {

TEST(LayoutSolver, EveryAssignmentVerifiesAndCanBePlanned) {
  auto context = makeContext();
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::string text = RandomNetwork(seed).text();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
    ASSERT_TRUE(module) << text;
    mlir::PassManager manager(context.get());
    mlir::OpPassManager &model = manager.nest<nn::ModelOp>();
    model.addPass(createAssignLayouts({"test:rules", 1, "fast"}));
    model.addPass(createFuse());
    model.addPass(createPlanKernels());
    model.addPass(createVerifySchedule());
    EXPECT_TRUE(mlir::succeeded(manager.run(*module))) << text;
  }
}

/// True for a value that is made anew in any layout: of a scalar, of what is narrower, or in f64.
bool isMadeAnew(mlir::Value value) {
  mlir::Operation *op = value.getDefiningOp();
  if (auto cast = mlir::dyn_cast_or_null<nn::CastOp>(op))
    return nn::tensorType(cast.getX()).getElementType().isBF16();
  return mlir::isa_and_nonnull<nn::BroadcastOp, nn::ConstantOp>(op) ||
         nn::tensorType(value).getElementType().isF64();
}

TEST(LayoutSolver, WhatIsMadeAnewIsNotReordered) {
  auto context = makeContext();
  unsigned madeAnew = 0; // in layouts that are not row-major
  for (unsigned seed = 0; seed < 60; ++seed) {
    auto module =
        mlir::parseSourceString<mlir::ModuleOp>(RandomNetwork(seed).text(), context.get());
    mlir::PassManager manager(context.get());
    manager.nest<nn::ModelOp>().addPass(createAssignLayouts({"test:rules", 1, "fast"}));
    ASSERT_TRUE(mlir::succeeded(manager.run(*module)));
    module->walk([&](mlir::Operation *op) {
      if (auto reorder = mlir::dyn_cast<nn::ReorderOp>(op))
        EXPECT_FALSE(isMadeAnew(reorder.getX())) << "seed " << seed;
      else if (op->getNumResults() == 1 && isMadeAnew(op->getResult(0)))
        madeAnew += nn::tensorType(op->getResult(0)).getEncoding() ? 1 : 0;
    });
  }
  EXPECT_GT(madeAnew, 50u);
}

/// Offers convolutions in one family only.
class OneFamilyPlanner final : public rt::KernelPlanner {
public:
  explicit OneFamilyPlanner(LayoutFamily family) : family(family) {}
  const rt::PlannerTarget &target() const noexcept override { return rules.target(); }
  rt::CandidateList candidates(const rt::KernelRequest &request) noexcept override {
    rt::CandidateList all = rules.candidates(request);
    std::erase_if(all.candidates, [&](const rt::KernelCandidate &candidate) {
      return candidate.layouts.front() != rt::layoutIn(family, 4, 16);
    });
    return all;
  }
  std::vector<uint8_t> finalise(const rt::KernelRequest &, const rt::KernelCandidate &,
                                std::string &) noexcept override {
    return {};
  }
  double generatedCost(uint64_t bytes, uint64_t flops) const noexcept override {
    return rules.generatedCost(bytes, flops);
  }
  double generatedCost(const rt::KernelRequest &request) const noexcept override {
    return rules.generatedCost(request);
  }

private:
  LayoutFamily family;
  TestPlanner rules;
};

TEST(LayoutSolver, FollowsTheFamilyThatTheLibraryHas) {
  auto context = makeContext();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    nn.model @m attributes {stage = "train"} {
      nn.program @predict(%x: tensor<2x16x8x8xf32> {nn.input = "x"}, %w: tensor<16x16x1x1xf32> {nn.input = "w"}) {
        %y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>,
          padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
          : (tensor<2x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<2x16x8x8xf32>
        %z = nn.relu %y : (tensor<2x16x8x8xf32>) -> tensor<2x16x8x8xf32>
        %u = nn.conv %z, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>,
          padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
          : (tensor<2x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<2x16x8x8xf32>
        nn.output "u", %u : tensor<2x16x8x8xf32>
      }
    })",
                                                        context.get());
  ASSERT_TRUE(module);
  nn::ModelOp model = *module->getOps<nn::ModelOp>().begin();
  for (LayoutFamily family :
       {LayoutFamily::Plain, LayoutFamily::ChannelsLast, LayoutFamily::Blocked}) {
    TargetKernels kernels(std::make_unique<OneFamilyPlanner>(family), {"test:rules"});
    auto solution = LayoutSolver(model, kernels).solve();
    ASSERT_TRUE(mlir::succeeded(solution));
    model.walk([&, family = family](nn::ReluOp relu) {
      EXPECT_EQ(solution->plan.layoutOf(relu), rt::layoutIn(family, 4, 16));
    });
  }
}

} // namespace
