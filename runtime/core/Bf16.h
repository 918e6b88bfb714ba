// Between f32 and bf16: rounding is to nearest even, NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace dlc::rt {

inline uint16_t bf16FromFloat(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  // Rounding a NaN could carry its payload away into an infinity: it is made quiet instead.
  uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

inline float floatFromBf16(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

} // namespace dlc::rt
