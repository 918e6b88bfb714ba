// The eight symmetries of a square, which --tta averages predictions over: flips and turns by 90
// degrees of the last two dimensions, Y and X.
//
// Pure functions; any thread.
#pragma once

#include "runtime/data/steps/Sample.h"

#include <span>
#include <vector>

namespace dlc::rt {

/// Flips first, then Y and X change places: all combinations are the eight symmetries, the first
/// of which changes nothing.
struct Symmetry {
  bool flipsY = false, flipsX = false, transposes = false;

  static constexpr int count = 8;
  static Symmetry at(int i) { return {(i & 1) != 0, (i & 2) != 0, (i & 4) != 0}; }
};

/// The shape [..., Y, X] of what was turned.
std::vector<int64_t> turnedShape(std::vector<int64_t> shape, Symmetry symmetry);

/// `values` of `shape` [..., Y, X].
std::vector<float> turned(std::span<const float> values, std::span<const int64_t> shape,
                          Symmetry symmetry);
/// Adds to `sum`, of `shape`, what turned() makes `values` of.
void addTurnedBack(std::span<const float> values, std::span<const int64_t> shape, Symmetry symmetry,
                   std::span<float> sum);

} // namespace dlc::rt
