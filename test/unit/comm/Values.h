// Deterministic operands of widely differing magnitude, so that the order of a sum shows in its
// bits, and the sums they must give.
#pragma once

#include "runtime/core/Bf16.h"

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace dlc::rt::test {

inline float operandValue(int rank, size_t index, unsigned salt = 0) {
  uint64_t x = (static_cast<uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15u +
               index * 0xbf58476d1ce4e5b9u + salt * 0x94d049bb133111ebu;
  x = (x ^ (x >> 31)) * 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  float mantissa = static_cast<float>(x & 0xffffff) / 8388608.0f - 1.0f;
  return std::ldexp(mantissa, static_cast<int>((x >> 24) % 24) - 12);
}

inline void fillOperand(std::span<float> data, int rank, unsigned salt = 0) {
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = operandValue(rank, i, salt);
}

inline std::vector<float> serialSum(size_t elements, int ranks, unsigned salt = 0) {
  std::vector<float> sum(elements);
  for (size_t i = 0; i < elements; ++i) {
    sum[i] = operandValue(0, i, salt);
    for (int r = 1; r < ranks; ++r)
      sum[i] += operandValue(r, i, salt);
  }
  return sum;
}

inline float roundToBf16(float value) { return floatFromBf16(bf16FromFloat(value)); }

/// One rank alone has no wire, and rounds nothing.
inline std::vector<float> serialBf16Sum(size_t elements, int ranks) {
  if (ranks == 1)
    return serialSum(elements, ranks);
  std::vector<float> sum(elements);
  for (size_t i = 0; i < elements; ++i) {
    float value = roundToBf16(operandValue(0, i));
    for (int r = 1; r < ranks; ++r)
      value += roundToBf16(operandValue(r, i));
    sum[i] = roundToBf16(value);
  }
  return sum;
}

/// Index of the first element whose bits differ, or the length where none does.
inline size_t firstDifference(std::span<const float> a, std::span<const float> b) {
  size_t i = 0;
  while (i < a.size() && std::bit_cast<uint32_t>(a[i]) == std::bit_cast<uint32_t>(b[i]))
    ++i;
  return i;
}

} // namespace dlc::rt::test
