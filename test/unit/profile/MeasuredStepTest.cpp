// What several steps took, as one.

#include "runtime/profile/MeasuredStep.h"

#include <gtest/gtest.h>

using namespace dlc::rt;

static const std::vector<MeasuredStep> steps = {
    {0.9, {0.7, 0.2}}, {0.05, {0.02, 0.03}}, {0.01, {0.009, 0.001}}, {0.07, {0.03, 0.04}}};

TEST(MeasuredStep, MeanLeavesOutTheSlowestAndTheQuickestQuarter) {
  MeasuredStep mean = middleOf(steps);
  EXPECT_NEAR(mean.seconds, 0.06, 1e-12);
  EXPECT_NEAR(mean.instructions[0], 0.025, 1e-12);
  EXPECT_NEAR(mean.instructions[1], 0.035, 1e-12);
  EXPECT_NEAR(middleOf({steps[0]}).seconds, 0.9, 1e-12);
}

TEST(MeasuredStep, BestIsOfEachInstruction) {
  MeasuredStep best = bestOf({{3, {1, 2}}, {4, {2, 1}}});
  EXPECT_EQ(best.seconds, 3);
  EXPECT_EQ(best.instructions, (std::vector<double>{1, 1}));
}
