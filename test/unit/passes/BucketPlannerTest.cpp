// Properties of bucket plans on random gradients.

#include "passes/BucketPlanner.h"

#include <gtest/gtest.h>

#include <random>

using namespace dlc;

namespace {

constexpr BucketLimits limits{4 << 20, 1 << 20};

uint64_t bytesOf(std::span<const Reduction> reductions, const Bucket &bucket) {
  uint64_t bytes = 0;
  for (unsigned i = bucket.begin; i < bucket.end; ++i)
    bytes += alignToSlice(reductions[i].bytes);
  return bytes;
}

std::vector<Reduction> randomReductions(std::mt19937 &random) {
  std::vector<Reduction> reductions(random() % 40);
  for (unsigned i = 0; i < reductions.size(); ++i) {
    reductions[i].bytes = 4 + random() % (random() % 8 ? 100'000 : 8'000'000);
    reductions[i].format = random() % 10 == 0;
    if (i > 0 && random() % 6 == 0)
      reductions[i].dependencies.push_back(random() % i);
  }
  return reductions;
}

TEST(BucketPlanner, KeepsOrderAndLimits) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Reduction> reductions = randomReductions(random);
    std::vector<Bucket> buckets = planBuckets(reductions, limits);
    unsigned next = 0;
    for (const Bucket &bucket : buckets) {
      EXPECT_EQ(bucket.begin, next);
      ASSERT_LT(bucket.begin, bucket.end);
      next = bucket.end;
      uint64_t limit = &bucket == &buckets.back() ? limits.lastBytes : limits.bytes;
      EXPECT_TRUE(bucket.end == bucket.begin + 1 || bytesOf(reductions, bucket) <= limit);
      for (unsigned i = bucket.begin; i < bucket.end; ++i) {
        EXPECT_EQ(reductions[i].format, reductions[bucket.begin].format);
        for (unsigned dependency : reductions[i].dependencies)
          EXPECT_LT(dependency, bucket.begin);
      }
    }
    EXPECT_EQ(next, reductions.size());
  }
}

TEST(BucketPlanner, CutsASmallLastBucket) {
  std::vector<Reduction> reductions(16, {512 << 10, 0, {}});
  std::vector<Bucket> buckets = planBuckets(reductions, limits);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].end, 8u);
  EXPECT_EQ(buckets[1].end, 14u);
  EXPECT_EQ(buckets[2].end, 16u);
}

TEST(BucketPlanner, SmallModelsSendOneMessage) {
  std::vector<Reduction> reductions(5, {1000, 0, {}});
  EXPECT_EQ(planBuckets(reductions, limits).size(), 1u);
  EXPECT_TRUE(planBuckets({}, limits).empty());
}

} // namespace
