// One sample of one source on its way through the data pipeline.
#pragma once

#include "runtime/data/steps/View.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace dlc::rt {

/// Numbers from low to high, both inclusive, and others.
struct ValueRange {
  double low, high;
  std::vector<double> others = {};
  bool hasOther(double value) const {
    return std::find(others.begin(), others.end(), value) != others.end();
  }
  bool holds(double value) const { return (value >= low && value <= high) || hasOther(value); }
};

struct Sample;

/// (x - shift) / divisor; one entry each, or one per channel.
struct Normalization {
  std::vector<float> shift, divisor;

  // Those that take a number of channels throw Error(BadInput) if the entries are for another one.

  /// At once, or when the values are read.
  void apply(Sample &sample) const;
  /// x * divisor + shift, of values of that many channels.
  void undo(std::span<float> values, size_t channels) const;
  /// Of each channel, what apply subtracts, and what it multiplies the difference with.
  std::pair<std::vector<float>, std::vector<float>> perChannel(size_t channels) const;
};

/// Row-major f32 values in stored units until a step changes them. `shape` is channels, then
/// spatial dimensions; empty for a plain number per sample (a label).
struct Sample {
  std::vector<int64_t> shape;
  std::vector<float> values;
  bool isCategorical = false; // classes, a mask or weights: not to be blended or brightened
  /// What a step has left to the program, of values that are still in stored units.
  std::optional<Normalization> normalization = {};
  /// Where the values lie as long as no step has needed them as numbers: `values` is empty then.
  std::optional<View> unread = {};

  /// Of an input that the program lacks.
  bool isAbsent() const { return values.empty() && !unread; }
  /// Reads the values, unless they are there.
  void settle();
  /// The view of them, in which they can be moved.
  View &view();
};

/// What a sample is for. Tiles cover images of any size in predictions.
enum class Use : uint8_t { Training, Evaluation, Prediction, PredictionInTiles };

} // namespace dlc::rt
