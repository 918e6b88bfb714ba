// Memory for arenas: aligned, zeroed, and refused before the machine runs out of it.

#include "runtime/cpu/CpuMemory.h"

#include "runtime/core/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

using namespace dlc::rt;

TEST(CpuMemory, IsAlignedAndZeroed) {
  for (size_t bytes : {size_t{64}, size_t{5000000}}) {
    CpuMemory memory(bytes);
    ASSERT_EQ(memory.bytes().size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.bytes().data()) % (2 << 20), 0u);
    EXPECT_TRUE(std::ranges::all_of(memory.bytes(), [](std::byte b) { return b == std::byte{0}; }));
  }
  EXPECT_TRUE(CpuMemory(0).bytes().empty());
}

TEST(CpuMemory, MoreThanThereIsIsRefused) {
  try {
    CpuMemory memory(size_t{1} << 46);
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.code, ErrorCode::Runtime);
    std::string message = error.what();
    EXPECT_NE(message.find("67108864 MiB"), std::string::npos) << message;
    EXPECT_NE(message.find("MiB are free"), std::string::npos) << message;
  }
}
