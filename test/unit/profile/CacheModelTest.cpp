// Where a step's bytes lie, and what that costs.

#include "runtime/profile/CacheModel.h"

#include <gtest/gtest.h>

using namespace dlc::rt;

/// A read byte costs 1 in L2, 10 in L3 and 100 in DRAM; written as well, twice that.
static MachineSpeed slowMemory() {
  MachineSpeed speed;
  speed.l2Bytes = 1 << 20;
  speed.l3Bytes = 4 << 20;
  speed.memory = {MemoryRates{1, 1, 1}, {0.1, 0.1, 0.1}, {0.01, 0.01, 0.01}};
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
  EXPECT_DOUBLE_EQ(cache.run({&small, 1}).nanoseconds, 100.0 * 100);
}
