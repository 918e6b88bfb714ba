#include "runtime/artifact/Formula.h"

#include <cmath>
#include <gtest/gtest.h>

namespace dlc::rt {
namespace {

double valueOf(const char *text, std::vector<Pair> means) {
  std::optional<Formula> formula = Formula::parse(text, means.size());
  EXPECT_TRUE(formula) << text;
  return formula ? formula->evaluate(means) : 0;
}

TEST(Formula, IsReadInPostfix) {
  std::vector<Pair> means = {{6, 4}, {1, 8}};
  EXPECT_EQ(valueOf("m0", means), 1.5);
  EXPECT_EQ(valueOf("m1 m0 div", means), 0.125 / 1.5);
  EXPECT_EQ(valueOf("7 m0 m1 sub mul 1e-2 add", means), 7 * (1.5 - 0.125) + 0.01);
  EXPECT_EQ(valueOf("m0 log10 -10 mul", means), -10 * std::log10(1.5));
  EXPECT_EQ(valueOf("m1 log exp sqrt neg abs", means), std::sqrt(std::exp(std::log(0.125))));
  EXPECT_EQ(valueOf("m0 tanh m0 sigmoid add", means), std::tanh(1.5) + 1 / (1 + std::exp(-1.5)));
  EXPECT_EQ(valueOf("-1 relu m0 relu add", means), 1.5);
}

TEST(Formula, AveragesWhatCounts) {
  std::vector<Pair> means = {{1, 2}, {0, 0}, {1, 4}, {9, 3}};
  EXPECT_EQ(valueOf("m0|m1|m2", means), 0.375);
  EXPECT_EQ(valueOf("m3 m2|m3 mul", means), 3 * 1.625);
  EXPECT_TRUE(std::isnan(valueOf("m1", means)));
  EXPECT_TRUE(std::isnan(valueOf("m1|m1", means)));
}

TEST(Formula, RefusesWhatIsNone) {
  for (const char *text : {"",     " ",     "m0 ", " m0",    "m0  m1 add", "m2",     "m",    "m-1",
                           "m0x",  "m0 m1", "add", "m0 add", "neg",        "1,5",    "inf",  "nan",
                           "0x10", "x",     "M0",  "m0|",    "m0|m2",      "m0||m1", "m0|1", "|m0"})
    EXPECT_FALSE(Formula::parse(text, 2)) << text;
  std::string numbers = "1";
  for (size_t i = 1; i < Formula::maxSteps / 2; ++i)
    numbers += " 1 add";
  EXPECT_TRUE(Formula::parse(numbers, 1));
  EXPECT_FALSE(Formula::parse(numbers + " neg neg", 1));
}

} // namespace
} // namespace dlc::rt
