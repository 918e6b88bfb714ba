// normalize and its inverse: a shift and a divisor, per sample or per channel.
#pragma once

#include "runtime/data/steps/Sample.h"

namespace dlc::rt {

/// (x - mean) / (std + 1e-6) per sample.
struct NormalizePerImage {
  Normalization of(const Sample &sample) const;
};

/// (x - p) / (q - p + 1e-6) per sample, where p and q are percentiles of its values, interpolated
/// linearly as numpy.percentile does.
struct NormalizePercentile {
  double low = 0, high = 100;
  Normalization of(const Sample &sample) const;
};

/// (x - mean) / (std + epsilon) per channel: given in the model, or measured over the training part
/// (`measured`), then kept with the weights.
struct NormalizeChannels {
  bool measured = false;
  std::vector<float> mean, deviation; // one entry, or one per channel
  float epsilon = 0;
  Normalization of(const Sample &sample) const;
};

/// Added to measured deviations and spans, so that constant images stay finite.
inline constexpr float normalizeEpsilon = 1e-6f;

} // namespace dlc::rt
