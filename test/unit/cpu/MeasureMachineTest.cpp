// Rates of memory and arithmetic: there, and in an order that no machine turns around.

#include "runtime/cpu/MeasureMachine.h"

#include "runtime/core/ParallelFor.h"

#include <gtest/gtest.h>

using namespace dlc::rt;

TEST(MeasureMachine, FindsEveryRate) {
  setTeamSize(2);
  MachineSpeed speed = measureMachine();
  ASSERT_EQ(speed.memory.size(), 3u);
  EXPECT_GT(speed.memory[0].bytes, 0u);
  EXPECT_GT(speed.memory[1].bytes, 0u);
  EXPECT_GT(speed.gigaflops, 0);
  for (const MemoryLevel &level : speed.memory) {
    EXPECT_GT(level.rates.read, 0);
    EXPECT_GT(level.rates.copy, 0);
    EXPECT_GT(level.rates.update, 0);
  }
}

TEST(MeasureMachine, TimeCountsReadsThatStoresCause) {
  MachineSpeed speed;
  speed.memory = {{"DRAM", {10, 0, 20}}};
  EXPECT_DOUBLE_EQ(speed.nanoseconds(0, 100, 0), 10);
  EXPECT_DOUBLE_EQ(speed.nanoseconds(0, 100, 100), 10);
  EXPECT_DOUBLE_EQ(speed.nanoseconds(0, 200, 100), 20); // a copy of 100 bytes
}
