// Draw i of a variable takes word i % 4 of Philox group i / 4; a normal draw takes the words of its
// pair. All in parallel, since a draw depends on nothing but its index.

#include "runtime/core/Initialize.h"

#include "runtime/core/ParallelFor.h"
#include "runtime/core/Philox.h"
#include "runtime/core/TensorIo.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace dlc::rt {
namespace {

// ln x for x in (0, 1]: ln m + e ln 2 with m in [1/sqrt 2, sqrt 2), ln m = 2 artanh((m-1)/(m+1)).
double naturalLog(double x) {
  auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & ((uint64_t{1} << 52) - 1)) | (uint64_t{1023} << 52));
  if (m >= std::numbers::sqrt2) {
    m *= 0.5;
    ++exponent;
  }
  double s = (m - 1) / (m + 1), q = s * s;
  double series = 1 + q * (1. / 3 + q * (1. / 5 + q * (1. / 7 + q * (1. / 9 + q * (1. / 11)))));
  return exponent * std::numbers::ln2 + 2 * s * series;
}

// Sine and cosine of 2 pi t for t in [0, 1), by quarter turns and Taylor series on [-pi/4, pi/4].
std::pair<double, double> sineAndCosine(double t) {
  auto quarter = static_cast<int>(4 * t + 0.5);
  double x = 2 * std::numbers::pi * (t - 0.25 * quarter), q = x * x;
  double sine = x * (1 - q / 6 * (1 - q / 20 * (1 - q / 42 * (1 - q / 72 * (1 - q / 110)))));
  double cosine =
      1 - q / 2 * (1 - q / 12 * (1 - q / 30 * (1 - q / 56 * (1 - q / 90 * (1 - q / 132)))));
  switch (quarter % 4) {
  case 0:
    return {sine, cosine};
  case 1:
    return {cosine, -sine};
  case 2:
    return {-sine, -cosine};
  default:
    return {-cosine, sine};
  }
}

// Calls draw(words, first element, elements) for the groups of four elements.
template <typename Draw>
void forEachGroup(uint64_t seed, uint32_t stream, std::span<float> values, Draw &&draw) {
  auto groups = static_cast<int64_t>((values.size() + 3) / 4);
  parallelFor(groups, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      auto index = static_cast<uint64_t>(group);
      std::array<uint32_t, 4> words = philox(
          seed, {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), stream, 0});
      float drawn[4];
      draw(words, drawn);
      for (size_t i = 0; i < 4 && index * 4 + i < values.size(); ++i)
        values[index * 4 + i] = drawn[i];
    }
  });
}

} // namespace

std::pair<float, float> normalPair(uint32_t first, uint32_t second) {
  // 1 - u lies in (0, 1], where the logarithm is finite.
  double radius = std::sqrt(-2 * naturalLog(1 - static_cast<double>(uniform01(first))));
  auto [sine, cosine] = sineAndCosine(static_cast<double>(uniform01(second)));
  return {static_cast<float>(radius * cosine), static_cast<float>(radius * sine)};
}

void drawInitialValues(const Artifact &artifact, const artifact::Variable &variable, uint64_t seed,
                       std::span<float> values) {
  const artifact::Initializer &start = *variable.initializer();
  auto a = static_cast<float>(start.a()), b = static_cast<float>(start.b());
  uint32_t stream = randomStream(variable.name()->string_view());
  switch (start.kind()) {
  case artifact::InitializerKind::Constant:
    std::ranges::fill(values, a);
    return;
  case artifact::InitializerKind::Normal:
    return forEachGroup(seed, stream, values, [&](const auto &words, float *drawn) {
      for (int pair = 0; pair < 2; ++pair) {
        auto [x, y] = normalPair(words[2 * pair], words[2 * pair + 1]);
        drawn[2 * pair] = a + b * x;
        drawn[2 * pair + 1] = a + b * y;
      }
    });
  case artifact::InitializerKind::Uniform:
    return forEachGroup(seed, stream, values, [&](const auto &words, float *drawn) {
      for (int i = 0; i < 4; ++i)
        drawn[i] = a + (b - a) * uniform01(words[i]);
    });
  case artifact::InitializerKind::Data: {
    const artifact::Buffer *buffer = artifact->buffers()->Get(variable.buffer());
    PhysicalType stored(buffer->type()->dtype(), readShape(*buffer->type()),
                        Layout::rowMajor(readShape(*buffer->type()).size()));
    readTensor(stored, std::as_bytes(artifact.data(*start.data())), values);
    return;
  }
  }
}

} // namespace dlc::rt
