#include "runtime/train/RunDirectory.h"
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
    std::array<std::unique_ptr<Communicator>, starts> communicators;
    std::barrier<> together(starts);
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < starts; ++i)
      threads.emplace_back([&, i] {
        communicators[i] = makeSingleCommunicator();
        runs[i].emplace(TrainOptions(), "model", *communicators[i]);
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

} // namespace
} // namespace dlc::rt
