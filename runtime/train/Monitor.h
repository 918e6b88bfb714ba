// Watches one figure over the epochs: which epoch was best, and when to stop early.
//
// Part of checkpoints. One thread at a time; all ranks observe the same values.
#pragma once

#include <cmath>
#include <cstdint>

namespace dlc::rt {

struct Monitor {
  bool higherIsBetter = false;
  int64_t patience = 0; // epochs without improvement until the run stops; 0: never

  bool hasBest = false;
  double best = 0;
  int64_t bestEpoch = 0;
  int64_t epochsWithout = 0;

  /// True if `value` is the best so far. Only a finite one is.
  bool observe(double value, int64_t epoch) {
    bool better = !hasBest || (higherIsBetter ? value > best : value < best);
    if (!std::isfinite(value) || !better) {
      ++epochsWithout;
      return false;
    }
    hasBest = true;
    best = value;
    bestEpoch = epoch;
    epochsWithout = 0;
    return true;
  }
  bool shouldStop() const { return patience > 0 && epochsWithout >= patience; }
};

} // namespace dlc::rt
