// The random numbers of one step on one sample: any number of them, each a function of its index
// alone. Immutable; may be used from any thread.
#pragma once

#include "runtime/core/Philox.h"

#include <cmath>
#include <numbers>

namespace dlc::rt {

class Draw {
public:
  /// 128 random bits. Words are drawn by Philox, half of the bits as key, half in the counter.
  explicit Draw(std::array<uint32_t, 4> bits)
      : key(uint64_t{bits[1]} << 32 | bits[0]), salt{bits[2], bits[3]} {}

  uint32_t word(uint64_t index) const {
    return philox(key, {static_cast<uint32_t>(index / 4), static_cast<uint32_t>(index >> 34),
                        salt[0], salt[1]})[index % 4];
  }
  bool coin(uint64_t index) const { return word(index) >> 31; }
  /// Uniform in [low, high).
  double between(uint64_t index, double low, double high) const {
    return low + (high - low) * static_cast<double>(uniform01(word(index)));
  }
  /// Uniform in 0..count - 1.
  int64_t below(uint64_t index, int64_t count) const {
    return static_cast<int64_t>(
        static_cast<unsigned __int128>(word(index)) * static_cast<uint64_t>(count) >> 32);
  }
  /// Standard normal by Box and Muller, from the words 2 * index and 2 * index + 1.
  double normal(uint64_t index) const {
    std::array<uint32_t, 4> words =
        philox(key, {static_cast<uint32_t>(index / 2), static_cast<uint32_t>(index >> 33), salt[0],
                     salt[1]});
    size_t first = index % 2 * 2;
    double radius = std::sqrt(-2 * std::log(1 - static_cast<double>(uniform01(words[first]))));
    return radius * std::cos(2 * std::numbers::pi * uniform01(words[first + 1]));
  }

private:
  uint64_t key;
  std::array<uint32_t, 2> salt;
};

} // namespace dlc::rt
