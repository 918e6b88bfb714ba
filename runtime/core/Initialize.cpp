// Draw i of a variable takes word i % 4 of Philox group i / 4; a normal draw takes the words of its
// pair. Draws are made in runs of straight-line loops, which compilers turn into vectors, compiled
// for the wider instruction sets as well: the same operations, never contracted, so the same bits.

#include "runtime/core/Initialize.h"

#include "runtime/core/Philox.h"
#include "runtime/core/TensorIo.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

// Sanitizers cannot enter the resolvers of clones.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DLC_VECTOR_CLONES
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DLC_VECTOR_CLONES
#endif
#endif
#ifndef DLC_VECTOR_CLONES
#define DLC_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#define DLC_INLINE inline __attribute__((always_inline))

namespace dlc::rt {
namespace {

// ln x for x in (0, 1]: ln m + e ln 2 with m in [1/sqrt 2, sqrt 2), ln m = 2 artanh((m-1)/(m+1)).
DLC_INLINE double naturalLog(double x) {
  auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = static_cast<int>(bits >> 52) - 1023;
  auto m = std::bit_cast<double>((bits & ((uint64_t{1} << 52) - 1)) | (uint64_t{1023} << 52));
  bool upper = m >= std::numbers::sqrt2;
  m = upper ? m * 0.5 : m;
  exponent += upper;
  double s = (m - 1) / (m + 1), q = s * s;
  double series = 1 + q * (1. / 3 + q * (1. / 5 + q * (1. / 7 + q * (1. / 9 + q * (1. / 11)))));
  return exponent * std::numbers::ln2 + 2 * s * series;
}

// Sine and cosine of 2 pi t for t in [0, 1), by quarter turns and Taylor series on [-pi/4, pi/4].
DLC_INLINE std::pair<double, double> sineAndCosine(double t) {
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): t is not negative, and lround is no vector code
  auto quarter = static_cast<int>(4 * t + 0.5);
  double x = 2 * std::numbers::pi * (t - 0.25 * quarter), q = x * x;
  double sine = x * (1 - q / 6 * (1 - q / 20 * (1 - q / 42 * (1 - q / 72 * (1 - q / 110)))));
  double cosine =
      1 - q / 2 * (1 - q / 12 * (1 - q / 30 * (1 - q / 56 * (1 - q / 90 * (1 - q / 132)))));
  // At a quarter turn the two change places; the signs follow the quadrant.
  double first = quarter % 2 ? cosine : sine, second = quarter % 2 ? sine : cosine;
  return {quarter & 2 ? -first : first, (quarter + 1) & 2 ? -second : second};
}

DLC_INLINE std::pair<float, float> drawPair(uint32_t first, uint32_t second) {
  // 1 - u lies in (0, 1], where the logarithm is finite.
  double radius = std::sqrt(-2 * naturalLog(1 - static_cast<double>(uniform01(first))));
  auto [sine, cosine] = sineAndCosine(static_cast<double>(uniform01(second)));
  return {static_cast<float>(radius * cosine), static_cast<float>(radius * sine)};
}

constexpr size_t runGroups = 64;
using Words = std::array<uint32_t, 4 * runGroups>;
using Draws = std::array<float, 4 * runGroups>;

/// Words of the groups first, first + 1, ...
DLC_VECTOR_CLONES void drawWords(uint64_t seed, uint32_t stream, uint64_t first, Words &words) {
  for (size_t i = 0; i < runGroups; ++i) {
    uint64_t group = first + i;
    std::array<uint32_t, 4> drawn =
        philox(seed, {static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32), stream, 0});
    for (size_t word = 0; word < 4; ++word)
      words[4 * i + word] = drawn[word];
  }
}

DLC_VECTOR_CLONES void toNormal(const Words &words, float mean, float deviation, Draws &draws) {
  for (size_t i = 0; i < words.size(); i += 2) {
    auto [x, y] = drawPair(words[i], words[i + 1]);
    draws[i] = mean + deviation * x;
    draws[i + 1] = mean + deviation * y;
  }
}

void toUniform(const Words &words, float low, float high, Draws &draws) {
  for (size_t i = 0; i < words.size(); ++i)
    draws[i] = low + (high - low) * uniform01(words[i]);
}

/// Calls convert(words, draws) for runs that cover the elements.
template <typename Convert>
void drawRuns(uint64_t seed, uint32_t stream, size_t first, std::span<float> values,
              Convert &&convert) {
  Words words;
  Draws draws;
  for (size_t done = 0; done < values.size();) {
    size_t skip = (first + done) % 4;
    drawWords(seed, stream, (first + done) / 4, words);
    convert(words, draws);
    size_t count = std::min(values.size() - done, draws.size() - skip);
    std::copy_n(draws.begin() + static_cast<std::ptrdiff_t>(skip), count, values.data() + done);
    done += count;
  }
}

} // namespace

std::pair<float, float> normalPair(uint32_t first, uint32_t second) {
  return drawPair(first, second);
}

void drawInitialValues(const artifact::Variable &variable, uint64_t seed, size_t first,
                       std::span<float> values) {
  const artifact::Initializer &start = *variable.initializer();
  auto a = static_cast<float>(start.a()), b = static_cast<float>(start.b());
  uint32_t stream = randomStream(variable.name()->string_view());
  switch (start.kind()) {
  case artifact::InitializerKind::Constant:
    std::ranges::fill(values, a);
    return;
  case artifact::InitializerKind::Normal:
    return drawRuns(seed, stream, first, values,
                    [&](const Words &words, Draws &draws) { toNormal(words, a, b, draws); });
  case artifact::InitializerKind::Uniform:
    return drawRuns(seed, stream, first, values,
                    [&](const Words &words, Draws &draws) { toUniform(words, a, b, draws); });
  }
}

} // namespace dlc::rt
