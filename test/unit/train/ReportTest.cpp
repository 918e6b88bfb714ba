#include "runtime/train/Report.h"
#include "runtime/record/ProcessTime.h"

#include <cmath>
#include <gtest/gtest.h>

namespace dlc::rt {
namespace {

TEST(Report, FiguresHaveFourDigitsAndNoSignOfNothing) {
  EXPECT_EQ(figureText(-0.123456), "-0.1235");
  EXPECT_EQ(figureText(std::copysign(std::nan(""), -1)), "nan");
}

TEST(Report, OpensAndClosesARun) {
  EXPECT_EQ(openingText({0, 2, 16}, 7), "2 ranks x batch 16 = 32 samples a step, 7 steps an epoch");
  EXPECT_EQ(openingText({0, 2, 8, 4}, 7),
            "2 ranks x 4 x batch 8 = 64 samples a step, 7 steps an epoch");
  EXPECT_EQ(openingText({0, 1, 1}, 1), "1 rank x batch 1 = 1 sample a step, 1 step an epoch");
  EXPECT_EQ(closingText(10, {5, 1, 0.5, 2, 0.25}),
            "10.00 s = compute 5.00 + exposed all-reduce 1.00 + data wait 0.50 + evaluation 2.00 + "
            "checkpoint 0.25 + other 1.25");
  EXPECT_EQ(timesText({1.5, 0.25}, 1, 1), "user 1.50 s, system 0.25 s, wall 1.00 s");
  EXPECT_EQ(timesText({3, 0.5}, 2, 1),
            "user 3.00 s, system 0.50 s (2 ranks together), wall 1.00 s");
  Record record = {{"event", "epoch"}, {"step", 7},      {"epoch", 1},           {"loss", 0.5},
                   {"val_iou", 0.75},  {"seconds", 2.0}, {"samples_per_s", 12.5}};
  EXPECT_EQ(epochText(record, 20, true),
            "epoch 1/20  loss 0.5  val_iou 0.75  2.0 s  12.5 samples/s  (best)");
  record["part"] = true;
  EXPECT_EQ(epochText(record, 20, false),
            "epoch 1 (part)  loss 0.5  val_iou 0.75  2.0 s  12.5 samples/s");
  EXPECT_EQ(monitorText({.higherIsBetter = true, .patience = 3}, true, "iou"),
            "best is the epoch of the highest val_iou; the run stops after 3 epochs without a "
            "better one");
}

} // namespace
} // namespace dlc::rt
