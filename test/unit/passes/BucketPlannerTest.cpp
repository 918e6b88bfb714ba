// Properties of bucket plans on random gradients.

#include "passes/planning/BucketPlanner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

using namespace dlc;

namespace {

constexpr BucketLimits limits{4 << 20, 1 << 20};

uint64_t bytesOf(std::span<const Reduction> reductions, const Bucket &bucket) {
  uint64_t bytes = 0;
  for (unsigned i : bucket.members)
    bytes += reductions[i].bytes;
  return bytes;
}

std::vector<Reduction> randomReductions(std::mt19937 &random) {
  std::vector<Reduction> reductions(random() % 40);
  for (unsigned i = 0; i < reductions.size(); ++i) {
    reductions[i].bytes = 4 + random() % (random() % 8 ? 100'000 : 8'000'000);
    reductions[i].format = random() % 10 == 0;
    if (i == 0 || random() % 6 != 0)
      continue;
    unsigned dependency = random() % i;
    reductions[i].dependencies = reductions[dependency].dependencies;
    reductions[i].dependencies.push_back(dependency);
  }
  return reductions;
}

TEST(BucketPlanner, KeepsOrderAndLimits) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Reduction> reductions = randomReductions(random);
    std::vector<Bucket> buckets = planBuckets(reductions, limits);
    std::vector<unsigned> bucketOf(reductions.size(), ~0u);
    int previous = -1;
    for (unsigned number = 0; number < buckets.size(); ++number) {
      const Bucket &bucket = buckets[number];
      ASSERT_FALSE(bucket.members.empty());
      EXPECT_TRUE(std::ranges::is_sorted(bucket.members));
      EXPECT_LT(previous, static_cast<int>(bucket.members.back()));
      previous = static_cast<int>(bucket.members.back());
      uint64_t limit = number + 1 == buckets.size() ? limits.lastBytes : limits.bytes;
      EXPECT_TRUE(bucket.members.size() == 1 || bytesOf(reductions, bucket) <= limit);
      for (unsigned i : bucket.members) {
        EXPECT_EQ(reductions[i].format, reductions[bucket.members.front()].format);
        EXPECT_EQ(std::exchange(bucketOf[i], number), ~0u);
      }
    }
    EXPECT_TRUE(std::ranges::none_of(bucketOf, [](unsigned it) { return it == ~0u; }));
    // Whatever a reduction needs has left before it.
    for (unsigned i = 0; i < reductions.size(); ++i)
      for (unsigned dependency : reductions[i].dependencies)
        EXPECT_LT(buckets[bucketOf[dependency]].members.back(), i);
  }
}

TEST(BucketPlanner, CutsASmallLastBucket) {
  std::vector<Reduction> reductions(16, {512 << 10, 0, {}});
  std::vector<Bucket> buckets = planBuckets(reductions, limits);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].members.back(), 7u);
  EXPECT_EQ(buckets[1].members.back(), 13u);
  EXPECT_EQ(buckets[2].members.back(), 15u);
}

// Sums that the pass waits for are of another format than gradients: they leave between these.
TEST(BucketPlanner, JoinsAcrossOtherFormats) {
  std::vector<Reduction> reductions;
  for (unsigned layer = 0; layer < 6; ++layer) {
    std::vector<unsigned> sums; // of the layers before, on which all depends
    for (unsigned i = 0; i < layer; ++i)
      sums.push_back(2 * i);
    reductions.push_back({1000, 1, sums});
    sums.push_back(2 * layer);
    reductions.push_back({300 << 10, 0, sums}); // a gradient
  }
  std::vector<Bucket> buckets = planBuckets(reductions, limits);
  // Six of sums, one of gradients, the last gradient.
  ASSERT_EQ(buckets.size(), 8u);
  EXPECT_EQ(buckets[5].members, std::vector<unsigned>({1, 3, 5, 7, 9}));
  EXPECT_EQ(buckets[7].members, std::vector<unsigned>({11}));
}

TEST(BucketPlanner, JoinsSmallOnesAcrossLargeOnes) {
  std::vector<Reduction> reductions;
  for (int layer = 0; layer < 4; ++layer) {
    reductions.push_back({8 << 20, 0, {}});
    reductions.push_back({1000, 0, {}});
  }
  reductions.push_back({1 << 20, 0, {}});
  std::vector<Bucket> buckets = planBuckets(reductions, limits);
  ASSERT_EQ(buckets.size(), 6u);
  EXPECT_EQ(buckets[4].members, (std::vector<unsigned>{1, 3, 5, 7}));
  reductions[4].dependencies = {1}; // what waits for a small one does not wait for later ones
  EXPECT_EQ(planBuckets(reductions, limits)[2].members, (std::vector<unsigned>{1, 3}));
}

TEST(BucketPlanner, SmallModelsSendOneMessage) {
  std::vector<Reduction> reductions(5, {1000, 0, {}});
  EXPECT_EQ(planBuckets(reductions, limits).size(), 1u);
  EXPECT_TRUE(planBuckets({}, limits).empty());
}

} // namespace
