// Properties that every forecast has, on random schedules, and a few worked by hand.

#include "passes/planning/OverlapSimulator.h"

#include <gtest/gtest.h>

#include <random>

using namespace dlc;

namespace {

/// Random backward pass: `buckets` starts between compute items, each waited for at the end or,
/// with `blocking`, at once.
std::vector<ScheduleItem> randomSchedule(std::mt19937 &random, bool blocking) {
  std::vector<ScheduleItem> schedule;
  unsigned buckets = random() % 6;
  for (unsigned bucket = 0; bucket < buckets; ++bucket) {
    for (unsigned i = random() % 4; i > 0; --i)
      schedule.push_back(ScheduleItem::compute(random() % 1'000'000));
    schedule.push_back(ScheduleItem::start(bucket, random() % 4'000'000));
    if (blocking)
      schedule.push_back(ScheduleItem::wait(bucket));
  }
  if (!blocking)
    for (unsigned bucket = 0; bucket < buckets; ++bucket) {
      schedule.push_back(ScheduleItem::wait(bucket));
      schedule.push_back(ScheduleItem::compute(random() % 10'000));
    }
  return schedule;
}

TEST(OverlapSimulator, ExposedIsAtMostCommunication) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    OverlapForecast forecast = OverlapSimulator({}).run(randomSchedule(random, i % 2 == 0));
    EXPECT_LE(forecast.exposed, forecast.communication);
    EXPECT_GE(forecast.total(), forecast.communication);
    EXPECT_GE(forecast.total(), forecast.compute);
  }
}

TEST(OverlapSimulator, BlockingExposesEverything) {
  std::mt19937 random(2);
  for (int i = 0; i < 100; ++i) {
    OverlapForecast forecast = OverlapSimulator({}).run(randomSchedule(random, true));
    EXPECT_EQ(forecast.exposed, forecast.communication);
    EXPECT_EQ(forecast.total(), forecast.compute + forecast.communication);
  }
}

TEST(OverlapSimulator, FasterLinkNeverExposesMore) {
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    std::vector<ScheduleItem> schedule = randomSchedule(random, false);
    uint64_t before = UINT64_MAX;
    for (double gbit : {0.1, 1.0, 10.0, 100.0}) {
      uint64_t exposed = OverlapSimulator({gbit, 30}).run(schedule).exposed;
      EXPECT_LE(exposed, before);
      before = exposed;
    }
  }
}

TEST(OverlapSimulator, MoreRanksMoveMoreUpToTheLimit) {
  constexpr double none = 1e-9; // latency
  OverlapSimulator limit({1, none});
  uint64_t before = 0;
  for (unsigned ranks = 1; ranks <= 64; ++ranks) {
    uint64_t time = OverlapSimulator({1, none}, ranks).transferTime(1 << 20);
    EXPECT_GE(time, before);
    EXPECT_LE(time, limit.transferTime(1 << 20));
    before = time;
  }
  EXPECT_EQ(OverlapSimulator({1, 10}, 1).transferTime(1 << 20), 0u);
}

TEST(OverlapSimulator, EveryRankMessagesEveryOtherTwice) {
  // 4 ranks: 3 contributions and 3 sums at 10 us each, and 1500 of 2000 bytes at 8 ns.
  EXPECT_EQ(OverlapSimulator({1, 10}, 4).transferTime(1000), 72'000u);
  EXPECT_EQ(OverlapSimulator({1, 10}, 2).transferTime(1000), 28'000u);
}

TEST(OverlapSimulator, WireCarriesOneBucketAtATime) {
  // 1 Gbit/s moves a byte in 8 ns, twice: 1,000 bytes take 16 us and 1 us of latency.
  std::vector<ScheduleItem> schedule{ScheduleItem::compute(5'000), ScheduleItem::start(0, 1000),
                                     ScheduleItem::compute(2'000), ScheduleItem::start(1, 1000),
                                     ScheduleItem::compute(3'000), ScheduleItem::wait(0),
                                     ScheduleItem::wait(1)};
  OverlapForecast forecast = OverlapSimulator({1, 1}).run(schedule);
  EXPECT_EQ(forecast.compute, 10'000u);
  EXPECT_EQ(forecast.communication, 34'000u);
  EXPECT_EQ(forecast.buckets[0].arrived, 22'000u);
  EXPECT_EQ(forecast.buckets[1].onWire, 22'000u);
  EXPECT_EQ(forecast.buckets[0].exposed(), 12'000u);
  EXPECT_EQ(forecast.buckets[1].exposed(), 17'000u);
  EXPECT_EQ(forecast.total(), 39'000u);
}

TEST(Link, ReadsBandwidthAndLatency) {
  ASSERT_TRUE(Link::parse("1:50"));
  EXPECT_EQ(Link::parse("1:50")->gbitPerSecond, 1);
  EXPECT_EQ(Link::parse("1:50")->latencyMicroseconds, 50);
  EXPECT_EQ(Link::parse("25")->latencyMicroseconds, 30);
  EXPECT_TRUE(Link::parse("shm"));
  for (const char *text : {"", "fast", "0", "-1", "1:", "1:x", "nan", "1e999"})
    EXPECT_FALSE(Link::parse(text)) << text;
}

} // namespace
