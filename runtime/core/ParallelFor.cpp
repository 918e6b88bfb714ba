// libgomp's team, entered through the function that GCC's `#pragma omp parallel` calls: clang would
// otherwise bring its own OpenMP library and a second team. Under ThreadSanitizer, which takes
// libgomp's barriers for races, the same interface stands on std::thread and oneDNN gets one
// thread.

#include "runtime/core/ParallelFor.h"

#include <csignal>
#include <pmmintrin.h>
#include <xmmintrin.h>

#ifdef DLC_PARALLEL_STD_THREAD
#include <thread>
#include <vector>
#endif

extern "C" {
void omp_set_num_threads(int threads);
int omp_get_max_threads(void);
int omp_get_thread_num(void);
void GOMP_parallel(void (*function)(void *), void *data, unsigned threads, unsigned flags);
}

namespace dlc::rt {
namespace {

struct Region {
  void (*function)(void *, unsigned);
  void *context;
};

// A denormal momentum would make an update 16 times slower.
void flushDenormals() {
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
}

// All but those that an instruction of the thread itself causes. What a library's kernel takes for
// its stack need not be one (StopSignal.h).
void blockSignals() {
  static thread_local bool blocked = false;
  if (blocked)
    return;
  sigset_t signals;
  ::sigfillset(&signals);
  for (int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT})
    ::sigdelset(&signals, own);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  blocked = true;
}

void enter(const Region &region, unsigned thread) {
  flushDenormals();
  if (thread != 0)
    blockSignals();
  region.function(region.context, thread);
}

} // namespace

void prepareTeam() {
  runOnTeam([](void *, unsigned) {}, nullptr); // entering is all it takes
}

#ifdef DLC_PARALLEL_STD_THREAD

static thread_local unsigned currentTeam = 1;

void setTeamSize(unsigned threads) {
  omp_set_num_threads(1);
  currentTeam = threads;
}

unsigned teamSize() { return currentTeam; }

void runOnTeam(void (*function)(void *, unsigned), void *context) {
  Region region{function, context};
  std::vector<std::thread> team;
  for (unsigned thread = 1; thread < currentTeam; ++thread)
    team.emplace_back([&region, thread] { enter(region, thread); });
  enter(region, 0);
  for (std::thread &member : team)
    member.join();
}

#else

void setTeamSize(unsigned threads) { omp_set_num_threads(static_cast<int>(threads)); }

unsigned teamSize() { return static_cast<unsigned>(omp_get_max_threads()); }

void runOnTeam(void (*function)(void *, unsigned), void *context) {
  Region region{function, context};
  GOMP_parallel(
      [](void *data) {
        enter(*static_cast<Region *>(data), static_cast<unsigned>(omp_get_thread_num()));
      },
      &region, 0, 0);
}

#endif

} // namespace dlc::rt
