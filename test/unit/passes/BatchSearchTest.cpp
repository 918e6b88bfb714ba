// The largest batch within a memory limit.

#include "passes/planning/BatchSearch.h"

#include <gtest/gtest.h>

using namespace dlc;

TEST(BatchSearch, FindsTheLargestInFewPlans) {
  for (uint64_t limit : {100ull, 110ull, 119ull, 5000ull, 123456ull})
    for (int64_t most : {1, 2, 17, 1 << 20}) {
      int plans = 0;
      auto bytesOf = [&](int64_t batch) -> std::optional<uint64_t> {
        ++plans;
        return 90 + 10 * static_cast<uint64_t>(batch);
      };
      int64_t expected = std::min<int64_t>(static_cast<int64_t>(limit - 90) / 10, most);
      EXPECT_EQ(largestBatch(bytesOf, limit, most), expected) << limit << " " << most;
      EXPECT_LE(plans, 6) << limit << " " << most;
    }
}

// Workspaces and padding make steps.
TEST(BatchSearch, EndsWhereBytesDoNotGrowEvenly) {
  for (int64_t limit = 1; limit < 400; ++limit) {
    auto bytesOf = [](int64_t batch) -> std::optional<uint64_t> {
      return 7 * (batch / 5) + batch * batch / 3;
    };
    std::optional<int64_t> found = largestBatch(bytesOf, static_cast<uint64_t>(limit), 1000);
    ASSERT_TRUE(found && *found >= 1);
    EXPECT_LE(*bytesOf(*found), static_cast<uint64_t>(limit));
    EXPECT_GT(*bytesOf(*found + 1), static_cast<uint64_t>(limit));
  }
}

TEST(BatchSearch, SaysThatNoneFits) {
  EXPECT_EQ(largestBatch([](int64_t) { return 10; }, 9, 100), 0);
  EXPECT_EQ(largestBatch([](int64_t) { return std::nullopt; }, 9, 100), std::nullopt);
}
