// The one team of threads of a compute thread, shared with oneDNN.
//
// Only ParallelFor.cpp names the threading library. Nothing here allocates after the team's first
// use. Every thread of the team flushes denormals, and none but the caller's takes signals that
// others send: in kernels of ours always, in oneDNN's since the step began, but for threads that
// libgomp starts anew because a kernel of oneDNN's between had fewer.
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

/// Makes every thread of the team treat denormals as zero and leave signals to the caller, also in
/// kernels that are not ours.
void prepareTeam();

/// Runs `function(context, thread)` on every thread of the team, the caller being thread 0.
void runOnTeam(void (*function)(void *context, unsigned thread), void *context);

/// The chunks of [0, extent), for threads to claim: first those of the part that is a thread's own
/// by its number, then what others have left. So kernels that follow each other find in a core's
/// cache what that core wrote, and a core that is busy elsewhere costs little.
class ChunkQueue {
public:
  ChunkQueue(int64_t extent, int64_t chunk, unsigned threads)
      : extent(extent), chunk(chunk), chunks((extent + chunk - 1) / chunk),
        count(std::clamp(threads, 1u, mostParts)) {
    for (unsigned part = 0; part < count; ++part)
      parts[part].next = firstOf(part);
  }

  /// Calls `body(begin, end)` until no chunk is left.
  template <typename Body> void drain(unsigned thread, Body &&body) {
    for (unsigned i = 0; i < count; ++i) {
      unsigned part = (thread + i) % count;
      int64_t last = firstOf(part + 1);
      for (;;) {
        int64_t claimed = parts[part].next.fetch_add(1, std::memory_order_relaxed);
        if (claimed >= last)
          break;
        body(claimed * chunk, std::min((claimed + 1) * chunk, extent));
      }
    }
  }

private:
  static constexpr unsigned mostParts = 64; // larger teams share them
  int64_t firstOf(unsigned part) const { return chunks * part / count; }

  int64_t extent, chunk, chunks;
  unsigned count;
  struct alignas(64) Part {
    std::atomic<int64_t> next;
  };
  Part parts[mostParts];
};

/// Calls `body(task, thread)` for all of [0, tasks) on the calling thread's team.
template <typename Body> void onThreads(int64_t tasks, Body &&body) {
  struct Context {
    ChunkQueue queue;
    std::remove_reference_t<Body> *body;
  } context{{tasks, 1, teamSize()}, std::addressof(body)};
  runOnTeam(
      [](void *opaque, unsigned thread) {
        auto &shared = *static_cast<Context *>(opaque);
        shared.queue.drain(thread,
                           [&](int64_t task, int64_t) { (*shared.body)(task, int64_t{thread}); });
      },
      &context);
}

/// Calls `body(begin, end)` for consecutive chunks of [0, extent). Chunk bounds depend on `chunk`
/// alone, not on the team.
template <typename Body> void parallelFor(int64_t extent, int64_t chunk, Body &&body) {
  if (extent <= 0)
    return;
  if (extent <= chunk)
    return body(int64_t{0}, extent);
  struct Context {
    ChunkQueue queue;
    std::remove_reference_t<Body> *body;
  } context{{extent, chunk, teamSize()}, std::addressof(body)};
  runOnTeam(
      [](void *opaque, unsigned thread) {
        auto &shared = *static_cast<Context *>(opaque);
        shared.queue.drain(thread, *shared.body);
      },
      &context);
}

} // namespace dlc::rt
