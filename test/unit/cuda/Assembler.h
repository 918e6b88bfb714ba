// The toolkit's assembler takes text that the driver is to assemble.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace dlc::rt::test {

/// Skips the test where there is no assembler, unless all that needs CUDA is wanted.
inline void expectAssembles(const std::string &ptx) {
  const char *home = std::getenv("CUDA_HOME");
  std::filesystem::path assembler =
      std::filesystem::path(home ? home : "/usr/local/cuda") / "bin/ptxas";
  if (!std::filesystem::exists(assembler)) {
    if (std::getenv("DLC_REQUIRE_CUDA"))
      FAIL() << "DLC_REQUIRE_CUDA is set and ptxas was not found";
    GTEST_SKIP() << "no ptxas";
  }
  std::string name = testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
  std::string text = testing::TempDir() + name + ".ptx";
  std::ofstream(text) << ptx;
  for (const char *architecture : {"sm_80", "sm_90", "sm_100"}) {
    std::string command = assembler.string() + " -arch=" + architecture + " -o /dev/null " + text;
    EXPECT_EQ(std::system(command.c_str()), 0) << architecture;
  }
  std::filesystem::remove(text);
}

} // namespace dlc::rt::test
