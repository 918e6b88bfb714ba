// Lines of a cache, transposed in AVX-512's registers.
#pragma once

#include "runtime/cpu/kernels/VectorUnits.h"

namespace dlc::rt {

/// Of 16 elements of 32 bits.
template <int64_t count> struct Lines {
  __m512i line[count];
};

/// Rows become columns, by interleaving the lines of one half with those of the other until one is
/// left.
template <int64_t count> DLC_AVX512 void transpose(Lines<count> &lines) {
  constexpr int side = 16;
  alignas(64) int32_t order[2][side];
  for (int32_t i = 0; i < side; ++i) {
    order[0][i] = i / 2 + i % 2 * side;
    order[1][i] = order[0][i] + side / 2;
  }
  __m512i lower = _mm512_load_si512(order[0]), upper = _mm512_load_si512(order[1]);
  for (int64_t half = count / 2, length = 1; half > 0; half /= 2, length *= 2) {
    Lines<count> longer;
    for (int64_t i = 0; i < half * length; ++i) {
      __m512i first = lines.line[i], second = lines.line[i + half * length];
      longer.line[2 * i] = _mm512_permutex2var_epi32(first, lower, second);
      longer.line[2 * i + 1] = _mm512_permutex2var_epi32(first, upper, second);
    }
    lines = longer;
  }
}

} // namespace dlc::rt
