// How much time memory is worth: the one rate at which passes trade memory for time.
#pragma once

#include <cstdint>

namespace dlc {

/// A plan that is smaller by some share of itself may make a step longer by a tenth of that share:
/// a tenth less memory for one hundredth more time. The rate is a judgement, not a measurement: who
/// has the memory hardly misses the time, and savings that are nearly free are made.
inline constexpr double memoryPrice = 0.1;

/// The share of a step that it may take to save some bytes of a plan of so many.
inline double worthOf(uint64_t saved, uint64_t plan) {
  return memoryPrice * static_cast<double>(saved) / static_cast<double>(plan);
}

} // namespace dlc
