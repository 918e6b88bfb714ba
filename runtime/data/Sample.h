// One sample of one source on its way through the data pipeline.
#pragma once

#include <cstdint>
#include <vector>

namespace dlc::rt {

/// Both inclusive.
struct ValueRange {
  double low, high;
  bool holds(double value) const { return value >= low && value <= high; }
};

/// Row-major f32 values in stored units until a step changes them. `shape` is channels, then
/// spatial dimensions; empty for a plain number per sample (a label).
struct Sample {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

} // namespace dlc::rt
