#include "runtime/train/Schedule.h"
#include "runtime/artifact/Error.h"
#include "runtime/train/Monitor.h"

#include <cmath>
#include <gtest/gtest.h>

namespace dlc::rt {
namespace {

using Entries = std::vector<std::unique_ptr<artifact::CallT>>;
using Numbers = std::vector<std::pair<std::string, std::vector<double>>>;

void add(Entries &entries, const std::string &name, const Numbers &arguments = {}) {
  entries.push_back(std::make_unique<artifact::CallT>());
  entries.back()->name = name;
  for (const auto &[argument, values] : arguments) {
    entries.back()->arguments.push_back(std::make_unique<artifact::ArgumentT>());
    entries.back()->arguments.back()->name = argument;
    entries.back()->arguments.back()->floats = values;
  }
}

TEST(Schedule, WithoutEntriesIsConstant) {
  Entries entries;
  EXPECT_EQ(Schedule(entries, 0.1, 10, 100).rate(57), 0.1);
  add(entries, "constant");
  EXPECT_EQ(Schedule(entries, 0.1, 10, 100).rate(57), 0.1);
}

TEST(Schedule, WarmUpRisesLinearly) {
  Entries entries;
  add(entries, "warm_up", {{"epochs", {2}}});
  Schedule schedule(entries, 1.0, 10, 100);
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.05);
  EXPECT_DOUBLE_EQ(schedule.rate(9), 0.5);
  EXPECT_DOUBLE_EQ(schedule.rate(19), 1.0);
  EXPECT_DOUBLE_EQ(schedule.rate(50), 1.0);
  Entries bySteps;
  add(bySteps, "warm_up", {{"steps", {4}}});
  Schedule fourSteps(bySteps, 0.8, 10, 100);
  for (auto [step, rate] : {std::pair(0, 0.2), {1, 0.4}, {2, 0.6}, {3, 0.8}, {4, 0.8}})
    EXPECT_DOUBLE_EQ(fourSteps.rate(step), rate) << step;
  Entries bare, half;
  add(bare, "warm_up"); // an epoch, 10 steps
  add(half, "warm_up", {{"epochs", {0.5}}});
  EXPECT_DOUBLE_EQ(Schedule(bare, 1.0, 10, 100).rate(4), 0.5);
  EXPECT_DOUBLE_EQ(Schedule(bare, 1.0, 10, 100).rate(9), 1.0);
  EXPECT_DOUBLE_EQ(Schedule(half, 1.0, 10, 100).rate(1), 0.4);
  EXPECT_DOUBLE_EQ(Schedule(half, 1.0, 10, 100).rate(4), 1.0);
}

TEST(Schedule, StepsDropAtEpochs) {
  Entries entries;
  add(entries, "step", {{"at", {2, 4}}, {"factor", {0.1}}});
  Schedule schedule(entries, 1.0, 10, 100);
  EXPECT_DOUBLE_EQ(schedule.rate(19), 1.0);
  EXPECT_DOUBLE_EQ(schedule.rate(20), 0.1);
  EXPECT_NEAR(schedule.rate(40), 0.01, 1e-15);
}

TEST(Schedule, CosineFallsToZero) {
  Entries entries;
  add(entries, "cosine");
  Schedule schedule(entries, 2.0, 10, 100);
  EXPECT_DOUBLE_EQ(schedule.rate(0), 2.0);
  EXPECT_NEAR(schedule.rate(50), 1.0, 1e-12);
  EXPECT_NEAR(schedule.rate(100), 0.0, 1e-12);
}

/// The floor is a share of the rate: floor + (1 - floor) (1 + cos(pi t / T)) / 2.
TEST(Schedule, CosineFallsToItsFloor) {
  Entries entries;
  add(entries, "cosine", {{"floor", {0.1}}});
  Schedule schedule(entries, 2.0, 10, 100);
  EXPECT_DOUBLE_EQ(schedule.rate(0), 2.0);
  EXPECT_NEAR(schedule.rate(25), 1.7363961030678928, 1e-12); // 2 (0.1 + 0.45 (1 + sqrt(0.5)))
  EXPECT_NEAR(schedule.rate(50), 1.1, 1e-12);
  EXPECT_NEAR(schedule.rate(75), 0.4636038969321072, 1e-12); // 2 (0.1 + 0.45 (1 - sqrt(0.5)))
  EXPECT_NEAR(schedule.rate(100), 0.2, 1e-12);
  EXPECT_NEAR(schedule.rate(150), 0.2, 1e-12); // resumed past the end that it counts to
  EXPECT_TRUE(Schedule::countsToAnEnd(entries));
}

/// The cosine counts from the first step on, through the warm-up, which multiplies it.
TEST(Schedule, WarmUpScalesACosineAboveItsFloor) {
  Entries entries;
  add(entries, "warm_up", {{"epochs", {2}}}); // 20 steps
  add(entries, "cosine", {{"floor", {0.2}}});
  Schedule schedule(entries, 1.0, 10, 60);
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.05);
  EXPECT_NEAR(schedule.rate(10), 11.0 / 20 * 0.9464101615137755, 1e-12); // cos(pi / 6): sqrt(0.75)
  EXPECT_NEAR(schedule.rate(15), 16.0 / 20 * 0.8828427124746190, 1e-12); // cos(pi / 4): sqrt(0.5)
  EXPECT_NEAR(schedule.rate(20), 0.8, 1e-12);                            // cos(pi / 3): 1 / 2
  EXPECT_NEAR(schedule.rate(30), 0.6, 1e-12);
  EXPECT_NEAR(schedule.rate(40), 0.4, 1e-12); // cos(2 pi / 3): -1 / 2
  EXPECT_NEAR(schedule.rate(60), 0.2, 1e-12);
}

// torch.optim.lr_scheduler.ExponentialLR: gamma^epoch.
TEST(Schedule, ExponentialFallsByEpoch) {
  Entries entries;
  add(entries, "exponential", {{"gamma", {0.5}}});
  Schedule schedule(entries, 2.0, 10, 100);
  EXPECT_DOUBLE_EQ(schedule.rate(0), 2.0);
  EXPECT_DOUBLE_EQ(schedule.rate(9), 2.0);
  EXPECT_DOUBLE_EQ(schedule.rate(10), 1.0);
  EXPECT_DOUBLE_EQ(schedule.rate(39), 0.25);
  EXPECT_FALSE(Schedule::countsToAnEnd(entries));
}

// torch.optim.lr_scheduler.PolynomialLR: (1 - t / T)^power.
TEST(Schedule, PolynomialFallsToTheEnd) {
  Entries line, square;
  add(line, "poly");
  add(square, "poly", {{"power", {2}}});
  Schedule straight(line, 2.0, 10, 100), curved(square, 2.0, 10, 100);
  EXPECT_DOUBLE_EQ(straight.rate(0), 2.0);
  EXPECT_DOUBLE_EQ(straight.rate(25), 1.5);
  EXPECT_DOUBLE_EQ(straight.rate(100), 0.0);
  EXPECT_DOUBLE_EQ(straight.rate(150), 0.0); // resumed past the end that it counts to
  EXPECT_DOUBLE_EQ(curved.rate(0), 2.0);
  EXPECT_DOUBLE_EQ(curved.rate(25), 2.0 * 0.75 * 0.75);
  EXPECT_DOUBLE_EQ(curved.rate(100), 0.0);
  EXPECT_TRUE(Schedule::countsToAnEnd(line));
}

TEST(Schedule, PlateauReducesAfterPatience) {
  Entries entries;
  add(entries, "reduce_on_plateau", {{"factor", {0.5}}, {"patience", {2}}});
  Schedule schedule(entries, 1.0, 10, 100);
  schedule.observe(INFINITY, false);
  EXPECT_FALSE(schedule.plateaus[0].hasBest);
  for (double loss : {3.0, 2.0, 2.0, 2.0})
    schedule.observe(loss, false);
  EXPECT_EQ(schedule.rate(0), 1.0); // two epochs without improvement are tolerated
  schedule.observe(NAN, false);
  EXPECT_EQ(schedule.rate(0), 0.5);
  schedule.observe(1.0, false);
  EXPECT_EQ(schedule.rate(0), 0.5);
}

/// torch.optim.lr_scheduler.ReduceLROnPlateau, mode "min", threshold 1e-4, relative: from 1 on less
/// than 0.9999 is better, from 0.9998 on less than 0.99970002. The third bad epoch in a row
/// reduces, and the count begins anew.
TEST(Schedule, PlateauCountsAnewAfterEachReduction) {
  Entries entries;
  add(entries, "reduce_on_plateau", {{"factor", {0.5}}, {"patience", {2}}});
  Schedule schedule(entries, 0.8, 10, 100);
  for (auto [loss, rate] : {std::pair(1.0, 0.8),
                            {0.99995, 0.8}, // bad: not less than 0.9999
                            {0.9999, 0.8},  // bad
                            {0.9998, 0.8},  // better, after 2 bad ones
                            {0.99975, 0.8},
                            {0.99971, 0.8},
                            {0.999701, 0.4}, // the third
                            {2.0, 0.4},
                            {2.0, 0.4},
                            {2.0, 0.2}, // the third
                            {0.9997, 0.2},
                            {2.0, 0.2},
                            {2.0, 0.2},
                            {2.0, 0.1}}) {
    schedule.observe(loss, false);
    EXPECT_DOUBLE_EQ(schedule.rate(57), rate) << loss;
  }
}

/// Mode "max": from 0.5 on more than 0.50005 is better. Defaults: a tenth after 10 epochs.
TEST(Schedule, PlateauWatchesWhatIsToRise) {
  Entries entries;
  add(entries, "reduce_on_plateau", {{"factor", {0.5}}, {"patience", {0}}});
  Schedule schedule(entries, 1.0, 10, 100);
  for (auto [accuracy, rate] : {std::pair(0.5, 1.0),
                                {0.50004, 0.5},
                                {0.50006, 0.5},
                                {0.6, 0.5},
                                {0.6, 0.25},
                                {0.1, 0.125}}) {
    schedule.observe(accuracy, true);
    EXPECT_DOUBLE_EQ(schedule.rate(0), rate) << accuracy;
  }
  Entries bare;
  add(bare, "reduce_on_plateau");
  Schedule patient(bare, 1.0, 10, 100);
  for (int epoch = 0; epoch <= 10; ++epoch)
    patient.observe(0.5, true);
  EXPECT_EQ(patient.rate(0), 1.0);
  patient.observe(0.5, true);
  EXPECT_DOUBLE_EQ(patient.rate(0), 0.1);
}

TEST(Schedule, EntriesMultiply) {
  Entries entries;
  add(entries, "warm_up", {{"epochs", {1}}});
  add(entries, "reduce_on_plateau", {{"factor", {0.5}}, {"patience", {0}}});
  Schedule schedule(entries, 1.0, 10, 100);
  schedule.observe(0.5, true);
  schedule.observe(0.4, true);
  EXPECT_DOUBLE_EQ(schedule.rate(4), 0.25);
}

TEST(Schedule, UnknownEntriesAreNamed) {
  Entries entries;
  add(entries, "zigzag");
  EXPECT_THROW(Schedule(entries, 1.0, 10, 100), Error);
}

TEST(Monitor, KeepsTheBestAndStopsAfterPatience) {
  Monitor monitor;
  monitor.higherIsBetter = true;
  monitor.patience = 2;
  EXPECT_TRUE(monitor.observe(0.5, 1));
  EXPECT_TRUE(monitor.observe(0.6, 2));
  EXPECT_FALSE(monitor.observe(0.6, 3));
  EXPECT_FALSE(monitor.shouldStop());
  EXPECT_FALSE(monitor.observe(NAN, 4));
  EXPECT_FALSE(monitor.observe(INFINITY, 5));
  EXPECT_TRUE(monitor.shouldStop());
  EXPECT_EQ(monitor.bestEpoch, 2);
}

} // namespace
} // namespace dlc::rt
