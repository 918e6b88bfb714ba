// Random numbers: Philox against its published vectors, the normal draws against the library's
// functions.

#include "runtime/core/Initialize.h"
#include "runtime/core/Philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

using namespace dlc::rt;

// Random123's known answers for philox4x32-10.
TEST(Philox, MatchesItsPublishedVectors) {
  EXPECT_EQ(philox(0, {0, 0, 0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t{0}, {~0u, ~0u, ~0u, ~0u}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Normal, AgreesWithBoxAndMuller) {
  constexpr double pi = std::numbers::pi;
  uint32_t first = 12345, second = 99;
  for (int i = 0; i < 20000; ++i) {
    first = first * 1664525 + 1013904223;
    second = second * 22695477 + 1;
    double radius = std::sqrt(-2 * std::log(1 - static_cast<double>(uniform01(first))));
    double angle = 2 * pi * static_cast<double>(uniform01(second));
    auto [x, y] = normalPair(first, second);
    ASSERT_NEAR(x, radius * std::cos(angle), 1e-6);
    ASSERT_NEAR(y, radius * std::sin(angle), 1e-6);
  }
}

TEST(Normal, IsFiniteAtTheEdges) {
  for (uint32_t first : {0u, 255u, 256u, ~0u})
    for (uint32_t second : {0u, 1u << 29, 1u << 30, 1u << 31, ~0u}) {
      auto [x, y] = normalPair(first, second);
      EXPECT_TRUE(std::isfinite(x) && std::isfinite(y)) << first << " " << second;
    }
}
