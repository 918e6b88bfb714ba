#include "runtime/core/StopSignal.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <gtest/gtest.h>
#include <pthread.h>
#include <thread>
#include <vector>

namespace dlc::rt {
namespace {

/// Until `flag` is set the stack of the calling thread is what lies below `top`, as in oneDNN's
/// matrix products.
void waitWithStackAt(void *top, const std::atomic<int> &flag) {
  asm volatile("mov %%rsp, %%rbx\n"
               "mov %0, %%rsp\n"
               "1: pause\n"
               "cmpl $0, (%1)\n"
               "je 1b\n"
               "mov %%rbx, %%rsp\n"
               :
               : "r"(top), "r"(&flag)
               : "rbx", "memory", "cc");
}

TEST(StopSignal, WritesNothingBelowTheStackOfAKernel) {
#ifdef DLC_PARALLEL_STD_THREAD
  GTEST_SKIP() << "ThreadSanitizer keeps signals back until a thread calls into the system";
#endif
  std::vector<unsigned char> heap(1 << 20, 0xa5);
  StopSignal signals;
  std::atomic<int> done = 0;
  std::thread sender([&, computing = ::pthread_self()] {
    ::pthread_kill(computing, SIGUSR1);
    while (!signals.received())
      std::this_thread::yield();
    done = 1;
  });
  waitWithStackAt(heap.data() + heap.size(), done);
  sender.join();
  EXPECT_EQ(signals.name(), "SIGUSR1");
  EXPECT_EQ(std::count(heap.begin(), heap.end(), 0xa5), std::ssize(heap));
}

TEST(StopSignal, GivesBackTheStackThatWasThere) {
  stack_t before, inside, after;
  ::sigaltstack(nullptr, &before);
  {
    StopSignal signals;
    ::sigaltstack(nullptr, &inside);
  }
  ::sigaltstack(nullptr, &after);
  EXPECT_NE(inside.ss_sp, before.ss_sp);
  EXPECT_EQ(after.ss_flags, before.ss_flags);
  EXPECT_EQ(after.ss_sp, before.ss_sp);
}

} // namespace
} // namespace dlc::rt
