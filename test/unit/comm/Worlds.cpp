// The conformance suite in one process: alone, threads that share memory, threads that send
// messages, and both together.
#include "test/unit/comm/Conformance.h"

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

} // namespace
} // namespace dlc::rt::test
