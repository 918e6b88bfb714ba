// What every control plane promises, whatever carries its messages.
#include "test/unit/comm/Conformance.h"

#include <chrono>
#include <numeric>
#include <thread>

namespace dlc::rt::test {
namespace {

TEST_P(ControlPlaneTest, KnowsItsRanks) {
  run([&](ControlPlane &c) {
    EXPECT_EQ(c.size(), GetParam().ranks);
    EXPECT_GE(c.rank(), 0);
    EXPECT_LT(c.rank(), c.size());
    EXPECT_LT(c.localRank(), c.localSize());
    EXPECT_LE(c.localSize(), c.size());
  });
}

TEST_P(ControlPlaneTest, AddsDoublesInRankOrder) {
  run([](ControlPlane &c) {
    std::vector<double> values = {0.1 * (c.rank() + 1), 1e300 / (c.rank() + 3), 1.0};
    std::vector<double> wanted = {0.1, 1e300 / 3, 1.0};
    for (int r = 1; r < c.size(); ++r) {
      wanted[0] += 0.1 * (r + 1);
      wanted[1] += 1e300 / (r + 3);
      wanted[2] += 1.0;
    }
    c.sum(values, "sum");
    EXPECT_EQ(values, wanted);
    c.sum({}, "sum");
  });
}

TEST_P(ControlPlaneTest, GathersUnequalSizes) {
  run([](ControlPlane &c) {
    auto bytesOf = [](int rank) {
      std::vector<std::byte> bytes(static_cast<size_t>(rank) * 70'000);
      for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(i * 31 + static_cast<size_t>(rank));
      return bytes;
    };
    auto all = c.allGather(bytesOf(c.rank()), "gathering");
    ASSERT_EQ(all.size(), static_cast<size_t>(c.size()));
    for (int r = 0; r < c.size(); ++r)
      EXPECT_EQ(all[r], bytesOf(r));
  });
}

TEST_P(ControlPlaneTest, BroadcastsFromEveryRank) {
  run([](ControlPlane &c) {
    for (int root = 0; root < c.size(); ++root) {
      std::vector<int> values(50'000, c.rank());
      if (c.rank() == root)
        std::iota(values.begin(), values.end(), root);
      c.broadcast(std::as_writable_bytes(std::span(values)), root);
      EXPECT_EQ(values.front(), root);
      EXPECT_EQ(values.back(), root + 49'999);
    }
  });
}

TEST_P(ControlPlaneTest, BarrierHoldsUntilTheLast) {
  run([](ControlPlane &c) {
    c.barrier("barrier");
    auto begin = std::chrono::steady_clock::now();
    if (c.rank() == c.size() - 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    c.barrier("barrier");
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(80));
  });
}

} // namespace
} // namespace dlc::rt::test
