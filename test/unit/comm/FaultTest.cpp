// Faults between ranks, seen from threads of one process.
#include "runtime/artifact/Error.h"
#include "runtime/comm/ControlPlanes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace dlc::rt::test {
namespace {

std::string errorOf(const std::function<void()> &action) {
  try {
    action();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

TEST(Faults, AnErrorOfOneRankEndsTheOthersAndIsTheOneReported) {
  auto begin = std::chrono::steady_clock::now();
  std::string text = errorOf([] {
    runInProcess(3, [](ControlPlane &c) {
      if (c.rank() == 1)
        throw Error(ErrorCode::BadInput, "no such file");
      c.barrier("barrier");
    });
  });
  EXPECT_EQ(text, "no such file");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Faults, AbortEndsPeers) {
  std::string text = errorOf([] {
    runInProcess(2, [](ControlPlane &c) {
      if (c.rank() == 0)
        c.abort("disk full");
      else
        c.barrier("barrier");
    });
  });
  EXPECT_EQ(text, "another rank gave up: disk full");
}

TEST(Faults, ARankThatHasEndedIsNamed) {
  std::string text = errorOf([] {
    runInProcess(2, [](ControlPlane &c) {
      HostCollectives &collectives = c.hostCollectives();
      DeviceSpan memory = collectives.allocateShared(4096);
      if (c.rank() == 0)
        collectives.wait(collectives.start({memory}, {1, 5, {}}));
    });
  });
  EXPECT_EQ(text, "rank 1 has ended; all-reduce of bucket 1 in step 5 cannot complete");
}

TEST(Faults, ARankThatDoesNotJoinAnExchangeIsNamed) {
  for (int ranksPerHost : {0, 1}) {
    std::string text = errorOf([&] {
      runInProcess(
          3,
          [](ControlPlane &c) {
            c.setTimeout(0.2);
            if (c.rank() == 2)
              std::this_thread::sleep_for(std::chrono::milliseconds(600));
            c.barrier("barrier");
          },
          ranksPerHost);
    });
    EXPECT_EQ(text, "barrier did not complete within 0.2 s: rank 2 has not joined it; find out "
                    "what holds it up, or raise --timeout");
  }
}

// Of three ranks, each after `started` collectives of which 4 are complete; the last one does what
// it is told.
std::string lateOnes(std::vector<uint64_t> started,
                     const std::function<void(ControlPlane &)> &last = nullptr) {
  return errorOf([&] {
    runInProcess(
        3,
        [&](ControlPlane &c) {
          c.setTimeout(5);
          if (c.rank() == 2 && last)
            return last(c);
          while (c.rank() > 0 && !c.hasPeerGivenUp())
            std::this_thread::yield();
          c.giveUp({4, started[c.rank()]},
                   [](uint64_t number) { return "all-reduce " + std::to_string(number); });
        },
        1);
  });
}

TEST(Faults, RanksThatAreBehindElsewhereAreNamed) {
  EXPECT_EQ(lateOnes({6, 5, 6}), "all-reduce 5 did not complete within 5 s: rank 1 has not started "
                                 "it; find out what holds it up, or raise --timeout");
  EXPECT_EQ(lateOnes({4, 5, 4}), "all-reduce 4 did not complete within 5 s: rank 0, rank 2 has not "
                                 "started it; find out what holds it up, or raise --timeout");
}

TEST(Faults, RanksThatAllWaitElsewhereAreNotNamed) {
  EXPECT_EQ(lateOnes({6, 6, 6}),
            "all-reduce 5 did not complete within 5 s, although all ranks have started it: find "
            "out what holds up the network between them, or raise --timeout");
  // None of what follows the complete ones: what comes before keeps all of them.
  EXPECT_EQ(lateOnes({4, 4, 4}),
            "all-reduce 4 did not complete within 5 s: rank 0, rank 1, rank 2 has not started it; "
            "find out what holds it up, or raise --timeout");
}

TEST(Faults, ARankThatDoesNotTellIsNamed) {
  auto sleep = [](ControlPlane &) { std::this_thread::sleep_for(std::chrono::seconds(3)); };
  EXPECT_EQ(lateOnes({6, 6, 6}, sleep), "all-reduce 5 did not complete within 5 s: rank 2 does not "
                                        "answer; find out what holds it up, or raise --timeout");
  EXPECT_EQ(
      lateOnes({6, 5, 6}, sleep),
      "all-reduce 5 did not complete within 5 s: rank 1, rank 2 has not started it or does not "
      "answer; find out what holds it up, or raise --timeout");
}

TEST(Faults, ARankInAnExchangeIsNotLateElsewhere) {
  auto meet = [](ControlPlane &c) {
    try {
      c.barrier("barrier");
    } catch (const Error &) { // the others have given up
    }
  };
  EXPECT_EQ(lateOnes({6, 5, 6}, meet), "all-reduce 5 did not complete within 5 s: rank 1 has not "
                                       "started it; find out what holds it up, or raise --timeout");
}

TEST(Faults, DifferentOperandsAreNoticed) {
  std::string text = errorOf([] {
    runInProcess(2, [](ControlPlane &c) {
      HostCollectives &collectives = c.hostCollectives();
      DeviceSpan memory = collectives.allocateShared(4096);
      memory.bytes = c.rank() == 0 ? 4096 : 4000;
      collectives.wait(collectives.start({memory}, {2, 9, {}}));
    });
  });
  EXPECT_NE(text.find("all-reduce of bucket 2 in step 9: rank "), std::string::npos) << text;
  EXPECT_NE(text.find("brings 10"), std::string::npos) << text;
}

TEST(Faults, OtherElementsThanF32AreRefused) {
  runInProcess(2, [](ControlPlane &c) {
    HostCollectives &collectives = c.hostCollectives();
    CollectiveOperation operation{collectives.allocateShared(4096)};
    operation.type = artifact::DType::BF16;
    EXPECT_EQ(errorOf([&] { collectives.start(operation, {}); }),
              "all-reduces on the host add f32, got BF16");
  });
}

// What comes after an error must not land in memory that somebody else has.
TEST(Faults, MemoryOfAnOutstandingOperationStays) {
  runInProcess(2, [](ControlPlane &c) {
    HostCollectives &collectives = c.hostCollectives();
    DeviceSpan memory = collectives.allocateShared(4096);
    auto *first = reinterpret_cast<float *>(memory.address);
    *first = 1;
    if (c.rank() == 0)
      collectives.start({memory}, {});
    collectives.unregisterMemory(memory); // as the owner does whom an error ends
    c.barrier("barrier");
    if (c.rank() == 0)
      EXPECT_EQ(*first, 1);
  });
}

} // namespace
} // namespace dlc::rt::test
