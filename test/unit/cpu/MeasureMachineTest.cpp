// Rates of memory and arithmetic: there, and in an order that no machine turns around.

#include "runtime/cpu/MeasureMachine.h"

#include "runtime/core/ParallelFor.h"

#include <gtest/gtest.h>

using namespace dlc::rt;

TEST(MeasureMachine, FindsEveryRate) {
  setTeamSize(2);
  MachineSpeed speed = measureMachine();
  EXPECT_GT(speed.l2Bytes, 0u);
  EXPECT_GT(speed.l3Bytes, 0u);
  EXPECT_GT(speed.gigaflops, 0);
  for (const MemoryRates &rates : speed.memory) {
    EXPECT_GT(rates.read, 0);
    EXPECT_GT(rates.copy, 0);
    EXPECT_GT(rates.update, 0);
  }
}

TEST(MeasureMachine, TimeCountsReadsThatStoresCause) {
  MachineSpeed speed;
  speed.memory[2] = {10, 0, 20};
  EXPECT_DOUBLE_EQ(speed.nanoseconds(MemoryLevel::Dram, 100, 0), 10);
  EXPECT_DOUBLE_EQ(speed.nanoseconds(MemoryLevel::Dram, 100, 100), 10);
  EXPECT_DOUBLE_EQ(speed.nanoseconds(MemoryLevel::Dram, 200, 100), 20); // a copy of 100 bytes
}
