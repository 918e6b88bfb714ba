// The team of threads: every chunk once, bounds independent of the team.

#include "runtime/core/ParallelFor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <bit>
#include <csignal>
#include <immintrin.h>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

using namespace dlc::rt;

TEST(ParallelFor, CoversEveryChunkOnce) {
  for (unsigned threads : {1u, 2u, 3u, 70u}) {
    setTeamSize(threads);
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> chunks;
    parallelFor(100, 7, [&](int64_t begin, int64_t end) {
      std::scoped_lock<std::mutex> lock(mutex);
      EXPECT_TRUE(chunks.emplace(begin, end).second);
    });
    EXPECT_EQ(chunks.size(), 15u);
    for (int64_t begin = 0; begin < 100; begin += 7)
      EXPECT_TRUE(chunks.contains({begin, std::min<int64_t>(begin + 7, 100)}));
  }
}

// What a thread wrote lies in its core's cache when the next kernel reads it.
TEST(ParallelFor, ThreadsBeginWithPartsOfTheirOwn) {
  setTeamSize(3);
  std::mutex mutex;
  std::map<std::thread::id, int64_t> firsts;
  std::barrier<> all(3);
  parallelFor(90, 2, [&](int64_t begin, int64_t) {
    bool isFirst = false;
    {
      std::scoped_lock<std::mutex> lock(mutex);
      isFirst = firsts.emplace(std::this_thread::get_id(), begin).second;
    }
    if (isFirst)
      all.arrive_and_wait(); // until then, nobody is done with a part
  });
  std::set<int64_t> begins;
  for (auto [thread, begin] : firsts)
    begins.insert(begin);
  EXPECT_EQ(begins, (std::set<int64_t>{0, 30, 60}));
  EXPECT_EQ(firsts[std::this_thread::get_id()], 0);
}

TEST(ParallelFor, WhoIsDoneHelpsTheOthers) {
  setTeamSize(2);
  std::atomic<int> done = 0;
  parallelFor(40, 1, [&](int64_t begin, int64_t) {
    while (begin == 0 && done < 39) // as a core that is busy elsewhere
      std::this_thread::yield();
    ++done;
  });
  EXPECT_EQ(done, 40);
}

TEST(ParallelFor, RunsOnAsManyThreadsAsAsked) {
  setTeamSize(3);
  EXPECT_EQ(teamSize(), 3u);
  struct Context {
    std::mutex mutex;
    std::set<unsigned> numbers;
    std::set<std::thread::id> threads;
  } context;
  runOnTeam(
      [](void *opaque, unsigned thread) {
        auto &seen = *static_cast<Context *>(opaque);
        std::scoped_lock<std::mutex> lock(seen.mutex);
        seen.numbers.insert(thread);
        seen.threads.insert(std::this_thread::get_id());
      },
      &context);
  EXPECT_EQ(context.numbers, (std::set<unsigned>{0, 1, 2}));
  EXPECT_EQ(context.threads.size(), 3u);
  EXPECT_TRUE(context.threads.contains(std::this_thread::get_id()));
}

TEST(ParallelFor, NothingToDoIsNothing) {
  parallelFor(0, 8, [](int64_t, int64_t) { FAIL(); });
}

// MXCSR: bit 15 flushes results, bit 6 takes denormal operands for zero.
static constexpr unsigned flushing = 1u << 15 | 1u << 6;

TEST(ParallelFor, EveryThreadFlushesDenormals) {
  setTeamSize(3);
  std::atomic<int> seen = 0;
  std::thread([&] { // a fresh compute thread, and so a fresh team
    _mm_setcsr(_mm_getcsr() & ~flushing);
    setTeamSize(3);
    struct Context {
      std::atomic<int> *seen;
    } context{&seen};
    runOnTeam(
        [](void *opaque, unsigned) {
          if ((_mm_getcsr() & flushing) == flushing)
            ++*static_cast<Context *>(opaque)->seen;
        },
        &context);
  })
      .join();
  EXPECT_EQ(seen, 3);
}

#ifndef DLC_PARALLEL_STD_THREAD
extern "C" void GOMP_parallel(void (*function)(void *), void *data, unsigned threads,
                              unsigned flags);

// A library enters the team by itself.
TEST(ParallelFor, LibrariesFindTheTeamFlushing) {
  std::atomic<int> seen = 0;
  std::thread([&] {
    setTeamSize(3);
    prepareTeam();
    GOMP_parallel(
        [](void *opaque) {
          if ((_mm_getcsr() & flushing) == flushing)
            ++*static_cast<std::atomic<int> *>(opaque);
        },
        &seen, 0, 0);
  }).join();
  EXPECT_EQ(seen, 3);
}
#endif

// A request to stop finds the thread that has a stack for it; a lost file, the thread that reads
// it.
TEST(ParallelFor, OnlyTheCallerTakesSignals) {
  std::atomic<int> take = 0, own = 0;
  struct Context {
    std::atomic<int> *take, *own;
  } context{&take, &own};
  std::thread([&] {
    setTeamSize(3);
    prepareTeam();
    runOnTeam(
        [](void *opaque, unsigned) {
          sigset_t blocked;
          ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
          *static_cast<Context *>(opaque)->take += !::sigismember(&blocked, SIGTERM);
          *static_cast<Context *>(opaque)->own += !::sigismember(&blocked, SIGBUS);
        },
        &context);
  }).join();
  EXPECT_EQ(take, 1);
  EXPECT_EQ(own, 3);
}

TEST(ParallelFor, DenormalMomentumDies) {
  std::vector<float> momentum(1000, std::numeric_limits<float>::denorm_min() * 1000);
  setTeamSize(2);
  parallelFor(1000, 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      volatile float factor = 0.9f;
      momentum[static_cast<size_t>(i)] *= factor;
    }
  });
  for (float value : momentum)
    EXPECT_EQ(std::bit_cast<uint32_t>(value), 0u);
}
