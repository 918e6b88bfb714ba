// The conformance suite in one process: alone, threads that share memory, threads that send
// messages, and both together.
#include "test/unit/comm/Conformance.h"

#include "runtime/artifact/Error.h"
#include "runtime/comm/ControlPlanes.h"
#include "runtime/core/Pages.h"

#include <atomic>
#include <chrono>
#include <cstring>

namespace dlc::rt::test {
namespace {

World single() {
  return {"single", 1, [](const auto &body) {
            std::unique_ptr<ControlPlane> control = makeSingleControlPlane();
            HostRank rank(*control);
            body(rank);
          }};
}

World threads(int ranks, int ranksPerHost, const std::string &kind) {
  auto run = [=](const std::function<void(Rank &)> &body) {
    runInProcess(
        ranks,
        [&](ControlPlane &c) {
          c.setTimeout(60);
          HostRank rank(c);
          body(rank);
        },
        ranksPerHost);
  };
  return {"threads" + std::to_string(ranks) + kind, ranks, run};
}

const auto worlds =
    testing::Values(single(), threads(1, 0, ""), threads(2, 0, ""), threads(3, 0, ""),
                    threads(4, 0, ""), threads(2, 1, "Messages"), threads(3, 1, "Messages"),
                    threads(3, 2, "Mixed"), threads(4, 2, "Mixed"));
INSTANTIATE_TEST_SUITE_P(InProcess, ControlPlaneTest, worlds, worldName);
INSTANTIATE_TEST_SUITE_P(InProcess, CollectivesTest, worlds, worldName);

// Rank 0 computes, as it were, and never waits: its progress alone must serve the others.
TEST(Progress, AloneServesPeersThatWait) {
  for (int ranksPerHost : {0, 1, 2}) {
    std::atomic<int> served = 0;
    runInProcess(
        3,
        [&](ControlPlane &c) {
          HostCollectives &collectives = c.hostCollectives();
          auto ticket = collectives.start({collectives.allocateShared(4'000'000)}, {});
          auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
          while (c.rank() == 0 && served < 2 && std::chrono::steady_clock::now() < end)
            collectives.progress();
          if (c.rank() == 0)
            EXPECT_EQ(served, 2);
          collectives.wait(ticket);
          ++served;
        },
        ranksPerHost);
  }
}

// A long kernel may come next, so one call sums all that is there.
TEST(Progress, LeavesNothingThatCanBeDone) {
  runInProcess(2, [](ControlPlane &c) {
    HostCollectives &collectives = c.hostCollectives();
    auto ticket = collectives.start({collectives.allocateShared(64 << 20)}, {});
    c.barrier("barrier"); // all have started
    collectives.progress();
    c.barrier("barrier"); // all have had one call
    c.setTimeout(0.05);
    if (c.rank() == 1)
      EXPECT_NO_THROW(collectives.wait(ticket)) << "rank 0 computes";
    c.setTimeout(60);
    c.barrier("barrier");
    collectives.wait(ticket);
  });
}

TEST(SharedMemory, IsGivenBack) {
  auto comeAndGo = [](ControlPlane &c) {
    HostCollectives &collectives = c.hostCollectives();
    DeviceSpan memory = collectives.allocateShared(64 << 20);
    std::memset(reinterpret_cast<void *>(memory.address), 1, memory.bytes);
    c.barrier("barrier"); // all have touched theirs
    uint64_t before = residentBytes().now;
    c.barrier("barrier"); // all have looked
    collectives.unregisterMemory(memory);
    c.barrier("barrier");
    EXPECT_LT(residentBytes().now, before - memory.bytes / 2);
  };
  comeAndGo(*makeSingleControlPlane());
  runInProcess(2, comeAndGo);
}

TEST(Collectives, OnTheHostAreSumsOfF32) {
  auto startOthers = [](ControlPlane &c) {
    CollectiveOperation operation;
    operation.kind = static_cast<artifact::CollectiveKind>(9);
    EXPECT_THROW(c.hostCollectives().start(operation, {}), Error);
    operation = {};
    operation.type = artifact::DType::BF16;
    EXPECT_THROW(c.hostCollectives().start(operation, {}), Error);
  };
  runInProcess(2, startOthers);
}

} // namespace
} // namespace dlc::rt::test
