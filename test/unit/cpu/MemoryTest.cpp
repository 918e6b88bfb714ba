// Memory for arenas: aligned, zeroed, and refused before the machine runs out of it.

#include "runtime/cpu/CpuMemory.h"

#include "runtime/artifact/Error.h"
#include "runtime/core/Pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

using namespace dlc::rt;

TEST(CpuMemory, IsAlignedAndZeroed) {
  for (auto [bytes, alignment] : {std::pair<size_t, size_t>{64, 4096}, {5000000, hugePageBytes}}) {
    CpuMemory memory(bytes);
    ASSERT_EQ(memory.bytes().size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.bytes().data()) % alignment, 0u);
    EXPECT_TRUE(std::ranges::all_of(memory.bytes(), [](std::byte b) { return b == std::byte{0}; }));
  }
  EXPECT_TRUE(CpuMemory(0).bytes().empty());
}

/// What is resident has been touched, and huge pages are counted for the span they lie in.
TEST(CpuMemory, IsResidentAndOnHugePagesWhereGranted) {
  std::string setting;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), setting);
  bool granted = !setting.empty() && setting.find("[never]") == std::string::npos;
  uint64_t before = residentBytes().now;
  CpuMemory large(16 * hugePageBytes), small(4096);
  EXPECT_GE(residentBytes().now, before + 15 * hugePageBytes);
  EXPECT_GE(residentBytes().peak, residentBytes().now);
  auto spanOf = [](const CpuMemory &memory) {
    return DeviceSpan{reinterpret_cast<uintptr_t>(memory.bytes().data()), memory.bytes().size()};
  };
  std::array spans{spanOf(large), spanOf(small)};
  std::array<uint64_t, 2> huge{};
  countHugePages(spans, huge);
  EXPECT_EQ(huge[1], 0u);
  if (!granted)
    GTEST_SKIP() << "the kernel grants no huge pages";
  EXPECT_GT(huge[0], 0u); // how many depends on how fragmented the machine's memory is
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
