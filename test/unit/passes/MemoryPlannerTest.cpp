// Properties of memory plans on random and hand-made intervals.

#include "passes/planning/MemoryPlanner.h"

#include "gtest/gtest.h"

#include <random>

using namespace dlc;

namespace {
std::vector<BufferInterval> randomBuffers(unsigned seed, size_t count) {
  std::mt19937 random(seed);
  std::vector<BufferInterval> buffers;
  for (size_t i = 0; i < count; ++i) {
    int64_t begin = random() % 100;
    buffers.push_back(
        {static_cast<int64_t>(random() % 5000 + 1), begin, begin + int64_t(random() % 20)});
  }
  return buffers;
}

TEST(MemoryPlanner, LiveBuffersNeverOverlap) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<BufferInterval> buffers = randomBuffers(seed, 60);
    MemoryPlan plan = planMemory(buffers, 64);
    for (size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % 64, 0);
      EXPECT_LE(plan.offsets[i] + buffers[i].bytes, plan.bytes);
      for (size_t j = 0; j < i; ++j) {
        bool together = buffers[i].begin <= buffers[j].end && buffers[j].begin <= buffers[i].end;
        bool overlap = plan.offsets[i] < plan.offsets[j] + buffers[j].bytes &&
                       plan.offsets[j] < plan.offsets[i] + buffers[i].bytes;
        EXPECT_FALSE(together && overlap) << "seed " << seed << ", buffers " << i << " and " << j;
      }
    }
    EXPECT_GE(plan.bytes, plan.lowerBound);
  }
}

TEST(MemoryPlanner, LowerBoundIsTheMostLiveBytes) {
  // 128 and 64 meet at instruction 2; the third comes later.
  MemoryPlan plan = planMemory({{128, 0, 2}, {64, 2, 3}, {100, 4, 4}}, 64);
  EXPECT_EQ(plan.lowerBound, 192);
  EXPECT_EQ(plan.bytes, 192);
}

TEST(MemoryPlanner, DisjointIntervalsShareMemory) {
  MemoryPlan plan = planMemory({{1000, 0, 1}, {1000, 2, 3}, {900, 4, 5}}, 64);
  EXPECT_EQ(plan.bytes, 1024);
}

TEST(MemoryPlanner, TheSmallestSufficientGapIsChosen) {
  // Live all the time: a keeps [0, 512), b [512, 896). When the short-lived c and d are gone, e
  // fits d's smaller gap.
  MemoryPlan plan = planMemory({{512, 0, 9}, {384, 0, 0}, {320, 0, 9}, {128, 5, 5}}, 64);
  EXPECT_EQ(plan.offsets[3], 512);
  EXPECT_EQ(plan.bytes, 512 + 384 + 320);
}

TEST(MemoryPlanner, BuffersOfThePeakLeaveNoHoles) {
  // Largest first, 192 lies below the first buffer, and only one of the two that follow it fits
  // there.
  MemoryPlan plan = planMemory({{128, 0, 4}, {128, 4, 4}, {192, 0, 3}, {128, 4, 4}}, 64);
  EXPECT_EQ(plan.lowerBound, 384);
  EXPECT_EQ(plan.bytes, 384);
}

TEST(MemoryPlanner, MovesUpWhatEndedOnTop) {
  // By size, from the peak and by time one of them lands above a hole.
  MemoryPlan plan =
      planMemory({{64, 5, 8}, {384, 3, 6}, {192, 1, 5}, {384, 0, 0}, {256, 1, 5}, {320, 0, 1}}, 64);
  EXPECT_EQ(plan.lowerBound, 896);
  EXPECT_EQ(plan.bytes, 896);
  // Here what the best of the three orders put on top, not what the first one did.
  plan = planMemory({{384, 0, 1}, {192, 1, 3}, {320, 1, 4}, {320, 4, 4}, {320, 3, 5}}, 64);
  EXPECT_EQ(plan.lowerBound, 960);
  EXPECT_EQ(plan.bytes, 960);
}

TEST(MemoryPlanner, EachOrderFillsHolesThatTheOthersLeave) {
  MemoryPlan fromPeak =
      planMemory({{320, 0, 2}, {256, 1, 4}, {320, 4, 5}, {64, 3, 5}, {192, 2, 3}}, 64);
  EXPECT_EQ(fromPeak.lowerBound, 768);
  EXPECT_EQ(fromPeak.bytes, 768);
  MemoryPlan byTime =
      planMemory({{256, 2, 5}, {256, 3, 6}, {128, 3, 3}, {320, 2, 2}, {256, 0, 3}}, 64);
  EXPECT_EQ(byTime.lowerBound, 896);
  EXPECT_EQ(byTime.bytes, 896);
}

TEST(MemoryPlanner, NothingNeedsNothing) {
  MemoryPlan plan = planMemory({}, 64);
  EXPECT_EQ(plan.bytes, 0);
  EXPECT_EQ(plan.lowerBound, 0);
}
} // namespace
