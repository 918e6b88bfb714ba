// The conformance suite in one process: alone, threads that share memory, threads that send
// messages, and both together.
#include "test/unit/comm/Conformance.h"

#include "runtime/artifact/Error.h"
#include "runtime/comm/Communicators.h"

#include <atomic>
#include <chrono>

namespace dlc::rt::test {
namespace {

World single() {
  return {"single", 1, [](const auto &body) { body(*makeSingleCommunicator()); }};
}

World threads(int ranks, int ranksPerHost, const std::string &kind) {
  auto run = [=](const std::function<void(Communicator &)> &body) {
    runInProcess(
        ranks,
        [&](Communicator &c) {
          c.setTimeout(60);
          body(c);
        },
        ranksPerHost);
  };
  return {"threads" + std::to_string(ranks) + kind, ranks, run};
}

INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorTest,
                         testing::Values(single(), threads(1, 0, ""), threads(2, 0, ""),
                                         threads(3, 0, ""), threads(4, 0, ""),
                                         threads(2, 1, "Messages"), threads(3, 1, "Messages"),
                                         threads(3, 2, "Mixed"), threads(4, 2, "Mixed")),
                         worldName);

// Rank 0 computes, as it were, and never waits: its progress alone must serve the others.
TEST(Progress, AloneServesPeersThatWait) {
  for (int ranksPerHost : {0, 1, 2}) {
    std::atomic<int> served = 0;
    runInProcess(
        3,
        [&](Communicator &c) {
          std::span<std::byte> memory = c.allocateShared(4'000'000);
          auto *data = reinterpret_cast<float *>(memory.data());
          auto ticket = c.startAllReduce(data, 1'000'000, artifact::DType::F32, {});
          auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
          while (c.rank() == 0 && served < 2 && std::chrono::steady_clock::now() < end)
            c.progress();
          if (c.rank() == 0)
            EXPECT_EQ(served, 2);
          c.wait(ticket);
          ++served;
        },
        ranksPerHost);
  }
}

// A long kernel may come next, so one call sums all that is there.
TEST(Progress, LeavesNothingThatCanBeDone) {
  runInProcess(2, [](Communicator &c) {
    std::span<std::byte> memory = c.allocateShared(64 << 20);
    auto *data = reinterpret_cast<float *>(memory.data());
    auto ticket = c.startAllReduce(data, 16 << 20, artifact::DType::F32, {});
    c.barrier("barrier"); // all have started
    c.progress();
    c.barrier("barrier"); // all have had one call
    c.setTimeout(0.05);
    if (c.rank() == 1)
      EXPECT_NO_THROW(c.wait(ticket)) << "rank 0 computes";
    c.setTimeout(60);
    c.barrier("barrier");
    c.wait(ticket);
  });
}

} // namespace
} // namespace dlc::rt::test
