// The instructions that kernels of vectors are written for: a type each, with the same operations.
//
// Code that is a template of such a type stands between `#pragma clang attribute push` and `pop`,
// in a file of its own for each (WinogradAvx512.cpp), and runs where the processor has the
// instructions alone.
#pragma once

#include <immintrin.h>

#include <cstdint>

#define DLC_INLINE __attribute__((always_inline))
#define DLC_AVX512 __attribute__((target("avx512f,avx512bw"), always_inline)) static inline
#define DLC_AVX2 __attribute__((target("avx2,fma"), always_inline)) static inline

namespace dlc::rt {

/// Vectors are of f32. In memory elements are f32 or bf16 and need not be aligned.
struct Avx512 {
  using Vector = __m512;
  static constexpr int64_t lanes = 16;
  static constexpr bool readsBF16 = true;
  /// Vectors of sums, and of rows beside so many, that fit into 32 registers with what they are
  /// multiplied from.
  static constexpr int64_t mostVectors = 4;
  static constexpr int64_t mostRows(int64_t vectors) {
    return vectors == 4 ? 6 : vectors == 3 ? 8 : 12;
  }

  DLC_AVX512 Vector zero() { return _mm512_setzero_ps(); }
  DLC_AVX512 Vector splat(float value) { return _mm512_set1_ps(value); }
  DLC_AVX512 Vector load(const float *from) { return _mm512_loadu_ps(from); }
  DLC_AVX512 Vector load(const uint16_t *from) {
    __m256i narrow = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16));
  }
  DLC_AVX512 void store(float *to, Vector value) { _mm512_storeu_ps(to, value); }
  /// To the nearest, of two to the even one. What is no number here has no bits that are cut off.
  DLC_AVX512 void store(uint16_t *to, Vector value) {
    __m512i bits = _mm512_castps_si512(value), high = _mm512_srli_epi32(bits, 16);
    __m512i isOdd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    bits = _mm512_add_epi32(bits, _mm512_add_epi32(isOdd, _mm512_set1_epi32(0x7FFF)));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
  }
  DLC_AVX512 Vector scaled(float factor, Vector x) { return _mm512_set1_ps(factor) * x; }
  DLC_AVX512 Vector addScaled(Vector sum, float factor, Vector x) {
    return addProduct(sum, _mm512_set1_ps(factor), x);
  }
  DLC_AVX512 Vector addProduct(Vector sum, Vector x, Vector y) {
    return _mm512_fmadd_ps(x, y, sum);
  }
  DLC_AVX512 Vector max(Vector x, Vector y) { return _mm512_max_ps(x, y); }
};

struct Avx2 {
  using Vector = __m256;
  static constexpr int64_t lanes = 8;
  static constexpr bool readsBF16 = false;
  static constexpr int64_t mostVectors = 2; // of 16 registers
  static constexpr int64_t mostRows(int64_t vectors) { return vectors == 2 ? 6 : 12; }

  DLC_AVX2 Vector zero() { return _mm256_setzero_ps(); }
  DLC_AVX2 Vector splat(float value) { return _mm256_set1_ps(value); }
  DLC_AVX2 Vector load(const float *from) { return _mm256_loadu_ps(from); }
  DLC_AVX2 void store(float *to, Vector value) { _mm256_storeu_ps(to, value); }
  DLC_AVX2 Vector scaled(float factor, Vector x) { return _mm256_set1_ps(factor) * x; }
  DLC_AVX2 Vector addScaled(Vector sum, float factor, Vector x) {
    return addProduct(sum, _mm256_set1_ps(factor), x);
  }
  DLC_AVX2 Vector addProduct(Vector sum, Vector x, Vector y) { return _mm256_fmadd_ps(x, y, sum); }
  DLC_AVX2 Vector max(Vector x, Vector y) { return _mm256_max_ps(x, y); }
};

} // namespace dlc::rt
