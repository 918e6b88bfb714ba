// Slices, rounding to bf16 and the sum of a slice.
#include "runtime/comm/SliceSum.h"
#include "runtime/comm/Slices.h"
#include "runtime/core/Bf16.h"
#include "test/unit/comm/Values.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace dlc::rt::test {
namespace {

TEST(Slices, CoverEveryElementOnceInUnitsOfACacheLine) {
  for (int ranks : {1, 2, 3, 7})
    for (size_t elements : {0, 1, 15, 16, 17, 100, 1'000'003}) {
      size_t next = 0;
      for (int r = 0; r < ranks; ++r) {
        Slice slice = sliceOf(elements, ranks, r);
        EXPECT_EQ(slice.begin, next);
        EXPECT_TRUE(slice.begin % 16 == 0 || slice.size() == 0);
        next = slice.end;
      }
      EXPECT_EQ(next, elements);
    }
}

TEST(Bf16, RoundsToNearestEven) {
  auto rounded = [](uint32_t bits) { return bf16FromFloat(std::bit_cast<float>(bits)); };
  EXPECT_EQ(rounded(0x3f800000), 0x3f80);
  EXPECT_EQ(rounded(0x3f808000), 0x3f80) << "a tie goes to the even neighbour below";
  EXPECT_EQ(rounded(0x3f818000), 0x3f82) << "a tie goes to the even neighbour above";
  EXPECT_EQ(rounded(0x3f808001), 0x3f81);
  EXPECT_EQ(rounded(0x7f7fffff), 0x7f80) << "the largest float rounds to infinity";
  EXPECT_EQ(rounded(0x80000000), 0x8000);
}

TEST(Bf16, KeepsInfinityAndNaN) {
  float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(roundToBf16(-infinity), -infinity);
  EXPECT_TRUE(std::isnan(roundToBf16(std::bit_cast<float>(0x7f800001u))));
  EXPECT_TRUE(std::isnan(roundToBf16(std::bit_cast<float>(0xffffffffu))));
}

TEST(SliceSum, WritesTheRangeAloneAndAllowsAContributionAsDestination) {
  constexpr size_t elements = 5000;
  std::array<std::vector<float>, 3> data;
  std::vector<Contribution> contributions;
  std::vector<float *> destinations;
  for (int r = 0; r < 3; ++r) {
    data[r].resize(elements);
    fillOperand(data[r], r);
    contributions.push_back({data[r].data(), nullptr});
    destinations.push_back(data[r].data());
  }
  sumContributions(contributions, destinations, 100, 4000, artifact::DType::F32);
  std::vector<float> sum = serialSum(elements, 3);
  for (int r = 0; r < 3; ++r)
    for (size_t i = 0; i < elements; ++i)
      ASSERT_EQ(data[r][i], i >= 100 && i < 4000 ? sum[i] : operandValue(r, i)) << r << ' ' << i;
}

TEST(SliceSum, TakesBf16FromTheWireAndF32FromMemoryAlike) {
  constexpr size_t elements = 3001;
  std::vector<float> memory(elements);
  std::vector<float> other(elements);
  fillOperand(memory, 0);
  fillOperand(other, 1);
  std::vector<uint16_t> wire(elements);
  packBf16(other, wire.data());
  std::vector<Contribution> contributions = {{memory.data(), nullptr}, {nullptr, wire.data()}};
  std::vector<float *> destinations = {memory.data()};
  sumContributions(contributions, destinations, 0, elements, artifact::DType::BF16);
  EXPECT_EQ(firstDifference(memory, serialBf16Sum(elements, 2)), elements);
}

} // namespace
} // namespace dlc::rt::test
