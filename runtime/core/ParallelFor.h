// The one team of threads of a compute thread, shared with oneDNN.
//
// Only ParallelFor.cpp names the threading library. Nothing here allocates after the team's first
// use. Every thread of the team flushes denormals: in kernels of ours always, in oneDNN's since the
// step began.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace dlc::rt {

/// Sets the size of the calling thread's team, for our kernels and oneDNN's.
void setTeamSize(unsigned threads);
unsigned teamSize();

/// Makes every thread of the team treat denormals as zero, also in kernels that are not ours.
void flushDenormalsOnTeam();

/// Runs `function(context, thread)` on every thread of the team, the caller being thread 0.
void runOnTeam(void (*function)(void *context, unsigned thread), void *context);

/// Calls `body(begin, end)` for consecutive chunks of [0, extent); threads claim chunks as they
/// come free. Chunk bounds depend on `chunk` alone, not on the team.
template <typename Body> void parallelFor(int64_t extent, int64_t chunk, Body &&body) {
  struct Context {
    std::atomic<int64_t> next{0};
    int64_t extent, chunk;
    std::remove_reference_t<Body> *body;
  } context{{}, extent, chunk, std::addressof(body)};
  auto work = [](void *opaque, unsigned) {
    auto &shared = *static_cast<Context *>(opaque);
    for (;;) {
      int64_t begin = shared.next.fetch_add(shared.chunk, std::memory_order_relaxed);
      if (begin >= shared.extent)
        return;
      (*shared.body)(begin, std::min(begin + shared.chunk, shared.extent));
    }
  };
  if (extent <= chunk)
    work(&context, 0);
  else
    runOnTeam(work, &context);
}

} // namespace dlc::rt
