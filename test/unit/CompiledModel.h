// Artifacts that the compiler of this build writes, for tests of what reads and runs them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace dlc::rt::test {

inline const std::filesystem::path models = DLC_TEST_MODELS;

/// Whether this build has a compiler; the runtime builds without one.
inline bool hasCompiler() { return std::filesystem::exists(DLC_TEST_COMPILER); }

/// The artifact that `dlc compile` makes of a model, for one thread of a target that every machine
/// has unless another is given: oneDNN serves one target per process. The test fails if the model
/// does not compile.
inline std::string compiledModel(const std::filesystem::path &model, const std::string &options,
                                 const std::string &target = "cpu:avx2 --threads=1") {
  // Tests of the same program run side by side.
  std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
  std::ranges::replace(name, '/', '-');
  std::string path = testing::TempDir() + model.stem().string() + "-" + name + ".dlx";
  std::string command = DLC_TEST_COMPILER " compile " + model.string() + " " + options +
                        " --target=" + target + " -o " + path + " > " + path + ".log 2>&1";
  // NOLINTNEXTLINE(bugprone-command-processor): the command is one of this build
  EXPECT_EQ(std::system(command.c_str()), 0) << "see " << path << ".log";
  return path;
}

} // namespace dlc::rt::test
