#include "runtime/train/RunDirectory.h"
#include "runtime/comm/ControlPlanes.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/TestFiles.h"

#include <array>
#include <barrier>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace dlc::rt {
namespace {

/// Threads that choose at the same instant, often enough for one to look while another creates.
TEST(RunDirectory, StartsAtOneTimeShareNone) {
  constexpr size_t rounds = 100, starts = 8;
  test::TemporaryDirectory directory;
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path);
  for (size_t round = 0; round < rounds; ++round) {
    std::array<std::optional<RunDirectory>, starts> runs;
    std::array<std::unique_ptr<ControlPlane>, starts> controls;
    std::barrier<> together(starts);
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < starts; ++i)
      threads.emplace_back([&, i] {
        controls[i] = makeSingleControlPlane();
        runs[i].emplace(TrainOptions(), "model", *controls[i]);
        together.arrive_and_wait();
        runs[i]->create();
      });
    threads.clear();
    std::set<std::string> paths;
    for (const auto &run : runs)
      paths.insert(run->path());
    EXPECT_EQ(paths.size(), starts) << "in round " << round;
  }
  std::filesystem::current_path(before);
}

class NamedRunDirectory : public ::testing::Test {
protected:
  std::string errorOfStart(const std::string &path, bool resume = false) {
    TrainOptions options;
    options.runDirectory = path;
    options.resume = resume;
    return test::errorOf([&] { RunDirectory(options, "model", *control).create(); });
  }

  test::TemporaryDirectory directory;
  std::unique_ptr<ControlPlane> control = makeSingleControlPlane();
};

/// A run that goes on is not joined by another one, whatever is done to the lock's file.
TEST_F(NamedRunDirectory, IsLockedWithoutItsLockFile) {
  TrainOptions options;
  options.runDirectory = directory / "run";
  RunDirectory running(options, "model", *control);
  running.create();
  std::filesystem::remove(directory / "run/lock");
  EXPECT_EQ(errorOfStart(options.runDirectory).find("another process trains in '"), 0u);
}

TEST_F(NamedRunDirectory, IsGoneUnlessItIsKept) {
  std::string path = directory / "run";
  EXPECT_EQ(errorOfStart(path), "no error");
  EXPECT_FALSE(std::filesystem::exists(path));
  {
    TrainOptions options;
    options.runDirectory = path;
    RunDirectory run(options, "model", *control);
    run.create();
    run.keep();
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(NamedRunDirectory, SaysWhichFileIsADirectory) {
  for (const char *name : {"best.safetensors", "last.safetensors", "log.csv", "lock"}) {
    std::string run = directory / (std::string("with-") + name);
    std::filesystem::create_directories(run + "/" + name);
    for (bool resume : {false, true})
      EXPECT_EQ(errorOfStart(run, resume).find("'" + run + "/" + name + "' is a directory, in"),
                0u);
  }
}

TEST_F(NamedRunDirectory, MayHaveANameThatIsTooLong) {
  std::string run = directory / std::string(300, 'n');
  EXPECT_EQ(errorOfStart(run), "cannot write the run directory '" + run + "': File name too long");
  EXPECT_EQ(errorOfStart(run, true), "cannot resume: there is no '" + run + "/last.safetensors'");
}

} // namespace
} // namespace dlc::rt
