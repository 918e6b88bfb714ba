// Every thread walks over memory of its own in windows of fixed size, all threads at one time: a
// window lasts from the first one's begin to the last one's end. Threads that ran one after the
// other, as on a loaded machine, would each have the whole bus. An area outside the caches is swept
// round and round, so that a window comes back only after the caches have held all others.

#include "runtime/cpu/MeasureMachine.h"

#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/CpuMemory.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <immintrin.h>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace dlc::rt {
namespace {

#define DLC_AVX2 __attribute__((target("avx2,fma")))

DLC_AVX2 void readWindow(const float *, float *from, int64_t floats) {
  __m256 sums[8] = {};
  for (int64_t i = 0; i < floats; i += 64)
    for (int j = 0; j < 8; ++j)
      sums[j] = _mm256_add_ps(sums[j], _mm256_load_ps(from + i + 8 * j));
  for (int j = 1; j < 8; ++j)
    sums[0] = _mm256_add_ps(sums[0], sums[j]);
  volatile float kept = _mm256_cvtss_f32(sums[0]);
  (void)kept;
}

DLC_AVX2 void copyWindow(const float *from, float *to, int64_t floats) {
  for (int64_t i = 0; i < floats; i += 64)
    for (int j = 0; j < 8; ++j)
      _mm256_store_ps(to + i + 8 * j, _mm256_load_ps(from + i + 8 * j));
}

DLC_AVX2 void updateWindow(const float *, float *at, int64_t floats) {
  const __m256 factor = _mm256_set1_ps(0.999f);
  for (int64_t i = 0; i < floats; i += 64)
    for (int j = 0; j < 8; ++j)
      _mm256_store_ps(at + i + 8 * j, _mm256_mul_ps(factor, _mm256_load_ps(at + i + 8 * j)));
}

constexpr int64_t multiplyAdds = 20000; // of each accumulator in a window

DLC_AVX2 void multiplyAdd256(float *out) {
  __m256 sums[12];
  for (__m256 &sum : sums)
    sum = _mm256_set1_ps(out[0]);
  const __m256 factor = _mm256_set1_ps(0.5f);
  for (int64_t i = 0; i < multiplyAdds; ++i)
    for (__m256 &sum : sums)
      sum = _mm256_fmadd_ps(sum, factor, factor);
  for (__m256 sum : sums)
    out[0] += _mm256_cvtss_f32(sum);
}

__attribute__((target("avx512f"))) void multiplyAdd512(float *out) {
  __m512 sums[12];
  for (__m512 &sum : sums)
    sum = _mm512_set1_ps(out[0]);
  const __m512 factor = _mm512_set1_ps(0.5f);
  for (int64_t i = 0; i < multiplyAdds; ++i)
    for (__m512 &sum : sums)
      sum = _mm512_fmadd_ps(sum, factor, factor);
  for (__m512 sum : sums)
    out[0] += _mm512_cvtss_f32(sum);
}

using Walk = void (*)(const float *from, float *to, int64_t floats);

int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void lower(std::atomic<int64_t> &value, int64_t other) {
  for (int64_t old = value; other < old && !value.compare_exchange_weak(old, other);)
    ;
}

/// One run of a team: when the first thread began and the last one was done.
class TogetherRun {
public:
  explicit TogetherRun(unsigned threads) : missing(static_cast<int>(threads)) {}

  /// Returns when all threads are here, or one is long in coming.
  void begin() {
    constexpr int64_t patience = 10'000'000;
    constexpr int spins = 2000; // then its core may be this one
    --missing;
    int64_t since = nanoseconds();
    for (int i = 0; missing > 0 && nanoseconds() - since < patience; ++i)
      if (i > spins)
        std::this_thread::yield();
    lower(first, nanoseconds());
  }
  void end() { lower(negativeLast, -nanoseconds()); }
  int64_t took() const { return -negativeLast - first; }

private:
  static constexpr int64_t never = std::numeric_limits<int64_t>::max();
  std::atomic<int> missing;
  std::atomic<int64_t> first{never}, negativeLast{never};
};

/// Nanoseconds of a run of `body(thread, run)` on the team; a quarter of many runs were quicker.
template <typename Body> double quickRun(const Body &body) {
  constexpr int leastRuns = 40;
  constexpr std::chrono::milliseconds limit(60);
  std::vector<int64_t> times;
  auto start = std::chrono::steady_clock::now();
  for (int64_t run = 0; run < leastRuns || std::chrono::steady_clock::now() - start < limit;
       ++run) {
    struct Region {
      const Body *body;
      int64_t run;
      TogetherRun together;
    } region{&body, run, TogetherRun(teamSize())};
    runOnTeam(
        [](void *opaque, unsigned thread) {
          auto &region = *static_cast<Region *>(opaque);
          region.together.begin();
          (*region.body)(thread, region.run);
          region.together.end();
        },
        &region);
    times.push_back(region.together.took());
  }
  auto quarter = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 4);
  std::ranges::nth_element(times, quarter);
  return static_cast<double>(*quarter);
}

/// What one thread walks over, in floats: a window is part of the area or several rounds in it. A
/// copy goes to a second area behind it.
struct Walked {
  int64_t area, window;
};

/// Bytes that the team walks per nanosecond. `at` moves on, so that a window outside the caches was
/// not seen lately.
double walkRate(Walk walk, std::span<float> memory, Walked size, int64_t &at) {
  int64_t floats = std::min(size.window, size.area), first = at, runs = 0;
  double nanoseconds = quickRun([&](unsigned thread, int64_t run) {
    float *from = memory.data() + 2 * size.area * thread + (first + run * floats) % size.area;
    for (int64_t done = 0; done < size.window; done += floats)
      walk(from, from + (walk == copyWindow ? size.area : 0), floats);
    if (thread == 0)
      runs = run + 1;
  });
  at += runs * floats;
  return static_cast<double>(size.window) * sizeof(float) * teamSize() / nanoseconds;
}

/// The first core's cache, from the kernel: the C library's figure may be the whole chip's.
int64_t cacheBytes(int level, int64_t otherwise) {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(level) + "/size");
  int64_t kibibytes = 0; // index 0 and 1 are the two of level 1; "1024K"
  return file >> kibibytes && kibibytes > 0 ? kibibytes << 10 : otherwise;
}

double multiplyAddRate() {
  bool wide = __builtin_cpu_supports("avx512f");
  double nanoseconds = quickRun([&](unsigned, int64_t) {
    float value = 1;
    wide ? multiplyAdd512(&value) : multiplyAdd256(&value);
    volatile float kept = value;
    (void)kept;
  });
  return 2.0 * 12 * (wide ? 16 : 8) * static_cast<double>(multiplyAdds) * teamSize() / nanoseconds;
}

} // namespace

MachineSpeed measureMachine() {
  constexpr int64_t mega = 1 << 20;
  int64_t threads = teamSize();
  int64_t l2 = cacheBytes(2, mega);
  int64_t l3 = cacheBytes(3, 16 * mega);
  MachineSpeed speed;
  speed.memory = {{"L2", {}, static_cast<uint64_t>(l2 * threads)}, {"L3", {}}, {"DRAM", {}}};
  // Bytes of an area: two of them inside the level, one well outside the level before it. A window
  // lasts some tens of microseconds: longer than the threads take to gather, shorter than a slice
  // of the scheduler's. Cores may have a last cache each, whatever a virtual machine says.
  constexpr int64_t window = mega / 2, mostMemory = int64_t{4} << 30;
  auto round = [](int64_t bytes) { return std::max(bytes / window, int64_t{1}) * window; };
  int64_t outside = round(std::min(2 * l3, mostMemory / 2 / threads));
  int64_t shared = round(std::min(l3 / threads / 4, 4 * l2));
  Walked sizes[] = {{l2 / 4, 4 * l2}, {shared, shared}, {outside, window}};
  CpuMemory memory(static_cast<size_t>(2 * outside * threads));
  std::span<float> floats(reinterpret_cast<float *>(memory.bytes().data()),
                          memory.bytes().size() / sizeof(float));
  // Pages that were never written may all be one.
  parallelFor(static_cast<int64_t>(floats.size()), window, [&](int64_t begin, int64_t end) {
    std::fill(floats.begin() + begin, floats.begin() + end, 1.0f);
  });
  constexpr auto each = static_cast<int64_t>(sizeof(float));
  for (size_t level = 0; level < speed.memory.size(); ++level) {
    Walked size{sizes[level].area / each, sizes[level].window / each};
    int64_t at = 0;
    auto rate = [&](Walk walk, int moved) { return moved * walkRate(walk, floats, size, at); };
    speed.memory[level].rates = {rate(readWindow, 1), rate(copyWindow, 3), rate(updateWindow, 2)};
  }
  // What the last cache holds of a team's memory: other machines may use it, too.
  double middle = std::sqrt(speed.memory[1].rates.read * speed.memory[2].rates.read);
  int64_t held = round(shared);
  for (int64_t area = round(l3 / threads / 2); area <= std::min(l3, outside); area += area / 2) {
    int64_t at = 0;
    Walked size{round(area) / each, window / each};
    if (walkRate(readWindow, floats, size, at) < middle)
      break;
    held = round(area);
  }
  speed.memory[1].bytes = static_cast<uint64_t>(held * threads);
  speed.gigaflops = multiplyAddRate();
  return speed;
}

} // namespace dlc::rt
