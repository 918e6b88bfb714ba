// Ranks that reduce step after step until rank 1 fails in the way asked for; the others must notice
// and say so; or that wait for collectives that go another way. Usage, below a launcher:
//   comm-faults kill|stop|end|throw|behind|silent [RANKS-PER-HOST]
#include "runtime/artifact/Error.h"
#include "test/unit/comm/ranks/World.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

using namespace dlc::rt;

void failAs(std::string_view how) {
  if (how == "kill")
    std::raise(SIGKILL);
  if (how == "stop")
    std::raise(SIGSTOP);
  if (how == "throw")
    throw Error(ErrorCode::BadInput, "rank 1 cannot read its file");
}

void train(ControlPlane &control, std::string_view how) {
  control.setTimeout(2);
  HostCollectives &collectives = control.hostCollectives();
  DeviceSpan memory = collectives.allocateShared(400'000);
  std::vector<std::string> members = {"conv1.weight", "conv1.bias"};
  for (uint64_t step = 0; step < 5; ++step) {
    if (step == 3 && control.rank() == 1) {
      failAs(how);
      if (how == "end")
        return;
    }
    collectives.wait(collectives.start({memory}, {1, step, members}));
  }
}

void waitElsewhere(ControlPlane &control, std::string_view how) {
  control.setTimeout(2);
  control.barrier("barrier");
  if (how == "silent" && control.rank() == 1)
    std::raise(SIGSTOP);
  while (control.rank() > 0 && !control.hasPeerGivenUp())
    control.check();
  control.giveUp({4, control.rank() == 1 ? 5u : 6u},
                 [](uint64_t number) { return "all-reduce " + std::to_string(number); });
}

} // namespace

int main(int argc, char **argv) {
  int perHost = argc > 2 ? std::stoi(argv[2]) : 0;
  auto control = dlc::rt::test::joinRanks(perHost);
  try {
    std::string_view how = argc > 1 ? argv[1] : "";
    if (how == "behind" || how == "silent")
      waitElsewhere(*control, how);
    train(*control, how);
  } catch (const Error &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    control->abort(error.what());
    return 1;
  }
  return 0;
}
