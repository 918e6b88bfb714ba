// Where a step's bytes lie, and what that costs.

#include "runtime/profile/CacheModel.h"

#include <gtest/gtest.h>

using namespace dlc::rt;

/// A read byte costs 1 in L2, 10 in L3 and 100 in DRAM; written as well, twice that.
static MachineSpeed slowMemory() {
  MachineSpeed speed;
  speed.memory = {
      {"L2", {1, 1, 1}, 1 << 20}, {"L3", {0.1, 0.1, 0.1}, 4 << 20}, {"DRAM", {0.01, 0.01, 0.01}}};
  return speed;
}

static constexpr uint64_t quarter = 256 << 10;

TEST(CacheModel, BytesComeFromWhereTheyWereLeft) {
  CacheModel cache(slowMemory());
  Touch near{0, quarter, false}, far{1 << 30, 2 << 20, false}, huge{1ul << 40, 8 << 20, false};
  EXPECT_DOUBLE_EQ(cache.run({&near, 1}).nanoseconds, 100.0 * quarter);
  EXPECT_DOUBLE_EQ(cache.run({&near, 1}).nanoseconds, 1.0 * quarter);
  cache.run({&far, 1});
  EXPECT_DOUBLE_EQ(cache.run({&near, 1}).nanoseconds, 10.0 * quarter);
  cache.run({&huge, 1});
  EXPECT_DOUBLE_EQ(cache.run({&near, 1}).nanoseconds, 100.0 * quarter);
}

TEST(CacheModel, WrittenBytesAreReadAndWrittenBack) {
  CacheModel cache(slowMemory());
  Touch touch{0, quarter, true};
  EXPECT_DOUBLE_EQ(cache.run({&touch, 1}).nanoseconds, 200.0 * quarter);
}

TEST(CacheModel, KernelsWalkOverTheirBuffersSideBySide) {
  CacheModel cache(slowMemory());
  // Together they are larger than L2: what each has last is what is left of it.
  std::array touches{Touch{0, 1 << 20, false}, Touch{1 << 30, 1 << 20, false}};
  cache.run(touches);
  Touch tail{(1 << 20) - quarter, quarter, false};
  EXPECT_DOUBLE_EQ(cache.run({&tail, 1}).nanoseconds, 1.0 * quarter);
}

TEST(CacheModel, CountsPartsOfPages) {
  CacheModel cache(slowMemory());
  Touch small{4096, 100, false};
  MemoryWork work = cache.run({&small, 1});
  EXPECT_DOUBLE_EQ(work.nanoseconds, 100.0 * 100);
  EXPECT_EQ(work.bytes, (std::map<std::string, double>{{"L2", 0}, {"L3", 0}, {"DRAM", 100}}));
}

// A device may have one cache, or none.
TEST(CacheModel, HasTheMachinesLevels) {
  MachineSpeed speed;
  speed.memory = {{"HBM", {0.5, 0.5, 0.5}}};
  CacheModel none(speed);
  Touch near{0, quarter, false};
  for (int i = 0; i < 2; ++i)
    EXPECT_DOUBLE_EQ(none.run({&near, 1}).nanoseconds, 2.0 * quarter);
  speed.memory.insert(speed.memory.begin(), {"L2", {1, 1, 1}, 1 << 20});
  CacheModel one(speed);
  EXPECT_DOUBLE_EQ(one.run({&near, 1}).nanoseconds, 2.0 * quarter);
  EXPECT_DOUBLE_EQ(one.run({&near, 1}).nanoseconds, 1.0 * quarter);
}
