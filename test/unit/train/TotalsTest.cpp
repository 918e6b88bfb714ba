#include "runtime/train/Totals.h"

#include <cmath>
#include <gtest/gtest.h>

namespace dlc::rt {
namespace {

Totals example() {
  return Totals({{"main", true, 1.0}, {"aux", true, 0.4}, {"accuracy", false, 1}});
}

TEST(Totals, LossIsTheWeightedSumOfTerms) {
  Totals totals = example();
  totals.add({{6, 2}, {10, 4}, {3, 4}});
  totals.add({{2, 2}, {10, 4}, {1, 4}});
  EXPECT_DOUBLE_EQ(totals.loss(), 2 + 0.4 * 2.5);
  EXPECT_DOUBLE_EQ(totals.value("accuracy"), 0.5);
  EXPECT_DOUBLE_EQ(totals.value("loss"), totals.loss());
  EXPECT_TRUE(std::isnan(totals.value("iou")));
}

TEST(Totals, FunctionsOfMetricsStandAheadOfThem) {
  std::vector<ResultInfo> infos = {
      {"loss", true, 1}, {"hits", false, 1}, {"f.0", false, 1}, {"f.1", false, 1}};
  Totals totals(infos, {{"f", {2, 3}, *Formula::parse("m0 m1 div", 2)}});
  totals.add({{1, 1}, {1, 2}, {1, 4}, {3, 2}});
  totals.add({{1, 1}, {1, 2}, {3, 4}, {1, 2}});
  std::vector<std::pair<std::string, double>> expected = {
      {"hits", 0.5}, {"f", 0.5}, {"f.0", 0.5}, {"f.1", 1}};
  EXPECT_EQ(totals.metrics(), expected);
  EXPECT_EQ(totals.value("f"), 0.5);
}

TEST(Totals, NumbersRoundTrip) {
  Totals totals = example(), other = example();
  totals.add({{6, 2}, {10, 4}, {3, 4}});
  other.setNumbers(totals.numbers());
  EXPECT_EQ(other.loss(), totals.loss());
  totals.clear();
  EXPECT_TRUE(std::isnan(totals.loss())); // nothing counted
}

TEST(Totals, NonFiniteSumsAreSeen) {
  Totals totals = example();
  totals.add({{6, 2}, {10, 4}, {3, 0}});
  EXPECT_TRUE(totals.isFinite()); // a metric may count nothing
  totals.add({{INFINITY, 2}, {10, 4}, {3, 4}});
  EXPECT_FALSE(totals.isFinite());
}

TEST(Totals, AMeanOfNothingIsNotFinite) {
  Totals totals = example();
  totals.add({{6, 2}, {0, 0}, {3, 4}});
  EXPECT_FALSE(totals.isFinite());
  EXPECT_TRUE(totals.countsNothing());
  totals.add({{6, 2}, {1, 1}, {3, 4}});
  EXPECT_TRUE(totals.isFinite());
  EXPECT_FALSE(totals.countsNothing());
}

} // namespace
} // namespace dlc::rt
