#include "runtime/data/steps/Geometry.h"

#include <algorithm>
#include <cmath>

namespace dlc::rt {

void cut(Sample &sample, std::span<const int64_t> first, std::span<const int64_t> size) {
  sample.view().cut(first, size);
  sample.shape = sample.view().shape();
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
  sample.settle();
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

void mirror(Sample &sample, size_t dim) { sample.view().mirror(dim); }

void quarterTurn(Sample &sample) { sample.view().quarterTurn(); }

} // namespace dlc::rt
