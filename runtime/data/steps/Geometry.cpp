#include "runtime/data/steps/Geometry.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace dlc::rt {

static size_t product(std::span<const int64_t> extents) {
  return static_cast<size_t>(
      std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>()));
}

void cut(Sample &sample, std::span<const int64_t> first, std::span<const int64_t> size) {
  Extents old(spatialOf(sample.shape).begin(), spatialOf(sample.shape).end());
  size_t rank = old.size();
  size_t channels = static_cast<size_t>(sample.shape[0]);
  size_t oldImage = product(old), rows = product(size.first(rank - 1));
  auto width = static_cast<size_t>(size[rank - 1]);
  std::vector<float> result(channels * rows * width, 0.0f);
  // Of a row: the elements that the sample has.
  int64_t low = std::max<int64_t>(0, -first[rank - 1]);
  int64_t high = std::min(size[rank - 1], old[rank - 1] - first[rank - 1]);
  for (size_t channel = 0; channel < channels; ++channel)
    for (size_t row = 0; row < rows && low < high; ++row) {
      bool isInside = true;
      int64_t from = 0, rest = static_cast<int64_t>(row);
      for (size_t dim = rank - 1, step = 1; dim-- > 0;) {
        int64_t at = first[dim] + rest % size[dim];
        rest /= size[dim];
        isInside &= at >= 0 && at < old[dim];
        from += at * static_cast<int64_t>(step);
        step *= static_cast<size_t>(old[dim]);
      }
      if (!isInside)
        continue;
      auto source = sample.values.begin() + static_cast<ptrdiff_t>(channel * oldImage) +
                    from * old[rank - 1] + first[rank - 1];
      std::copy(source + low, source + high,
                result.begin() + static_cast<ptrdiff_t>((channel * rows + row) * width) + low);
    }
  std::copy(size.begin(), size.end(), sample.shape.begin() + 1);
  sample.values = std::move(result);
}

/// One axis of `blocks` times `extent` times `inner` elements.
static std::vector<float> resampledAxis(std::span<const float> values, size_t extent, size_t inner,
                                        size_t size, bool takesNearest) {
  size_t blocks = values.size() / (extent * inner);
  std::vector<float> result(blocks * size * inner);
  double scale = static_cast<double>(extent) / static_cast<double>(size);
  for (size_t i = 0; i < size; ++i) {
    double centre = (static_cast<double>(i) + 0.5) * scale;
    double at = takesNearest ? std::floor(centre) : std::max(0.0, centre - 0.5);
    size_t low = std::min(static_cast<size_t>(at), extent - 1);
    size_t high = takesNearest ? low : std::min(low + 1, extent - 1);
    auto share = static_cast<float>(takesNearest ? 0 : at - static_cast<double>(low));
    for (size_t block = 0; block < blocks; ++block)
      for (size_t k = 0; k < inner; ++k) {
        float a = values[(block * extent + low) * inner + k];
        float b = values[(block * extent + high) * inner + k];
        result[(block * size + i) * inner + k] = a + share * (b - a);
      }
  }
  return result;
}

void resample(Sample &sample, std::span<const int64_t> size) {
  size_t inner = 1;
  for (size_t dim = sample.shape.size(); dim-- > 1;) {
    auto extent = static_cast<size_t>(sample.shape[dim]);
    auto wanted = static_cast<size_t>(size[dim - 1]);
    if (extent != wanted)
      sample.values = resampledAxis(sample.values, extent, inner, wanted, sample.isCategorical);
    sample.shape[dim] = size[dim - 1];
    inner *= wanted;
  }
}

void mirror(Sample &sample, size_t dim) {
  size_t inner = product(std::span(sample.shape).subspan(dim + 1));
  auto extent = static_cast<size_t>(sample.shape[dim]);
  for (size_t block = 0; inner == 1 && block < sample.values.size(); block += extent)
    std::reverse(sample.values.begin() + static_cast<ptrdiff_t>(block),
                 sample.values.begin() + static_cast<ptrdiff_t>(block + extent));
  for (size_t block = 0; inner > 1 && block < sample.values.size(); block += extent * inner)
    for (size_t low = 0, high = extent - 1; low < high; ++low, --high)
      std::swap_ranges(sample.values.begin() + static_cast<ptrdiff_t>(block + low * inner),
                       sample.values.begin() + static_cast<ptrdiff_t>(block + (low + 1) * inner),
                       sample.values.begin() + static_cast<ptrdiff_t>(block + high * inner));
}

void quarterTurn(Sample &sample) {
  auto side = static_cast<size_t>(sample.shape.back());
  std::vector<float> turned(sample.values.size());
  constexpr size_t strip = 16; // rows whose lines stay in the cache
  for (size_t plane = 0; plane < turned.size(); plane += side * side)
    for (size_t top = 0; top < side; top += strip)
      for (size_t column = 0; column < side; ++column)
        for (size_t row = top; row < std::min(top + strip, side); ++row)
          turned[plane + row * side + column] =
              sample.values[plane + column * side + (side - 1 - row)];
  sample.values = std::move(turned);
}

} // namespace dlc::rt
