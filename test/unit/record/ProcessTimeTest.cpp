#include "runtime/record/ProcessTime.h"

#include <ctime>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dlc::rt {
namespace {

/// dlc-run's compiler is such a process.
TEST(ProcessTime, HoldsThatOfProcessesWaitedFor) {
  ProcessorTime before = processorTime();
  if (pid_t child = fork(); child == 0) {
    while (clock() < CLOCKS_PER_SEC / 10)
      ;
    _exit(0);
  } else {
    waitpid(child, nullptr, 0);
  }
  ProcessorTime after = processorTime();
  EXPECT_GT(after.user + after.system - before.user - before.system, 0.08);
}

} // namespace
} // namespace dlc::rt
