// The symmetries of a square, by hand on 2 x 3 numbers.
#include "runtime/predict/Symmetry.h"

#include <gtest/gtest.h>
#include <set>

namespace dlc::rt {
namespace {

using Values = std::vector<float>;

const Values plane = {1, 2, 3, 4, 5, 6};
const std::vector<int64_t> shape = {2, 3};

TEST(Symmetry, FlipsAndTransposes) {
  EXPECT_EQ(turned(plane, shape, {}), plane);
  EXPECT_EQ(turned(plane, shape, {.flipsY = true}), (Values{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(turned(plane, shape, {.flipsX = true}), (Values{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(turned(plane, shape, {.transposes = true}), (Values{1, 4, 2, 5, 3, 6}));
  // A quarter turn: rows 4 5 6 and 1 2 3, then rows become columns.
  EXPECT_EQ(turned(plane, shape, {.flipsY = true, .transposes = true}), (Values{4, 1, 5, 2, 6, 3}));
  EXPECT_EQ(turnedShape({7, 2, 3}, {.transposes = true}), (std::vector<int64_t>{7, 3, 2}));
  EXPECT_EQ(turnedShape({7, 2, 3}, {.flipsY = true}), (std::vector<int64_t>{7, 2, 3}));
}

TEST(Symmetry, EightThatDifferAndAreUndone) {
  std::set<Values> all;
  Values sum(plane.size(), 0);
  for (int i = 0; i < Symmetry::count; ++i) {
    Values values = turned(plane, shape, Symmetry::at(i));
    all.insert(values);
    addTurnedBack(values, shape, Symmetry::at(i), sum);
  }
  EXPECT_EQ(all.size(), 8u);
  EXPECT_EQ(sum, (Values{8, 16, 24, 32, 40, 48}));
}

TEST(Symmetry, TurnsEachPlaneOfAVolume) {
  EXPECT_EQ(turned(Values{1, 2, 3, 4, 5, 6, 7, 8}, std::vector<int64_t>{2, 2, 2},
                   {.flipsX = true, .transposes = true}),
            (Values{2, 4, 1, 3, 6, 8, 5, 7}));
}

} // namespace
} // namespace dlc::rt
