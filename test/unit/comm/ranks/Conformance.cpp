// The conformance suite of processes: every rank runs every test in the same order.
#include "test/unit/comm/Conformance.h"
#include "test/unit/comm/Values.h"
#include "test/unit/comm/ranks/RankTests.h"
#include "test/unit/comm/ranks/World.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <sys/resource.h>

namespace dlc::rt::test {
namespace {

struct Setup {
  ControlPlane *control = nullptr;
  int ranksPerHost = 0;
};
Setup setup; // before the tests are instantiated

World processes() {
  return {"processes", setup.control->size(), [](const auto &body) {
            HostRank rank(*setup.control);
            body(rank);
          }};
}

// Evaluated by InitGoogleTest, when the control plane is there.
INSTANTIATE_TEST_SUITE_P(Processes, ControlPlaneTest, testing::Values(processes()), worldName);
INSTANTIATE_TEST_SUITE_P(Processes, CollectivesTest, testing::Values(processes()), worldName);

TEST(Processes, HasTheHostsAskedFor) {
  if (setup.ranksPerHost)
    EXPECT_LE(setup.control->localSize(), setup.ranksPerHost);
  else
    EXPECT_EQ(setup.control->localSize(), setup.control->size());
}

// What happens where /dev/shm is small: one rank alone finds no room.
TEST(Processes, SumsWhereMemoryCannotBeShared) {
  ControlPlane &c = *setup.control;
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  if (c.rank() == c.size() - 1) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit small{1 << 20, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  constexpr size_t elements = 1 << 20;
  HostCollectives &collectives = c.hostCollectives();
  DeviceSpan memory = collectives.allocateShared(elements * sizeof(float));
  setrlimit(RLIMIT_FSIZE, &before);
  std::span<float> data(reinterpret_cast<float *>(memory.address), elements);
  fillOperand(data, c.rank());
  collectives.wait(collectives.start({memory}, {}));
  EXPECT_EQ(firstDifference(data, serialSum(elements, c.size())), elements);
}

int runTests(int argc, char **argv) {
  constexpr std::string_view option = "--ranks-per-host=";
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]).starts_with(option))
      setup.ranksPerHost = std::stoi(argv[i] + option.size());
  auto control = joinRanks(setup.ranksPerHost);
  if (control->size() < 2) {
    std::fputs("start this with mpirun or start.py, -np 2 or more\n", stderr);
    return 1;
  }
  control->setTimeout(30);
  setup.control = control.get();
  return runRankTests(*control, argc, argv);
}

} // namespace
} // namespace dlc::rt::test

int main(int argc, char **argv) { return dlc::rt::test::runTests(argc, argv); }
