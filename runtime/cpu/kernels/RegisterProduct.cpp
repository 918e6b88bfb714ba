#include "runtime/cpu/kernels/RegisterProduct.h"

#include <array>
#include <utility>

namespace dlc::rt {
namespace {

template <int64_t Rows, int64_t Vectors, bool AdjacentRows>
__attribute__((target("avx512f"))) void multiply(const float *a, const float *b, float *c,
                                                 std::span<const ProductPart> parts,
                                                 const ProductStrides &strides, bool adds) {
  __m512 sums[Rows][Vectors];
#pragma clang loop unroll(full)
  for (int64_t row = 0; row < Rows; ++row)
#pragma clang loop unroll(full)
    for (int64_t v = 0; v < Vectors; ++v)
      sums[row][v] =
          adds ? _mm512_loadu_ps(c + row * strides.cRow + v * vectorLanes) : _mm512_setzero_ps();
  const int64_t aRow = AdjacentRows ? 1 : strides.aRow, aStep = AdjacentRows ? strides.aStep : 1;
  for (const ProductPart &part : parts) {
    const float *ofA = a + part.a, *ofB = b + part.b;
    for (int64_t step = 0; step < part.steps; ++step, ofA += aStep, ofB += strides.bStep) {
      __m512 lanes[Vectors];
#pragma clang loop unroll(full)
      for (int64_t v = 0; v < Vectors; ++v)
        lanes[v] = _mm512_loadu_ps(ofB + v * vectorLanes);
#pragma clang loop unroll(full)
      for (int64_t row = 0; row < Rows; ++row) {
        __m512 factor = _mm512_set1_ps(ofA[row * aRow]);
#pragma clang loop unroll(full)
        for (int64_t v = 0; v < Vectors; ++v)
          sums[row][v] = _mm512_fmadd_ps(factor, lanes[v], sums[row][v]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int64_t row = 0; row < Rows; ++row)
#pragma clang loop unroll(full)
    for (int64_t v = 0; v < Vectors; ++v)
      _mm512_storeu_ps(c + row * strides.cRow + v * vectorLanes, sums[row][v]);
}

template <int64_t Vectors, bool AdjacentRows, size_t... Rows>
constexpr auto listRows(std::index_sequence<Rows...>) {
  return std::array<RegisterProduct, sizeof...(Rows)>{
      multiply<static_cast<int64_t>(Rows) + 1, Vectors, AdjacentRows>...};
}

template <int64_t Vectors> RegisterProduct choose(int64_t rows, bool adjacentRows) {
  using Rows = std::make_index_sequence<static_cast<size_t>(mostRows(Vectors))>;
  static constexpr auto adjacent = listRows<Vectors, true>(Rows());
  static constexpr auto apart = listRows<Vectors, false>(Rows());
  return (adjacentRows ? adjacent : apart)[static_cast<size_t>(rows) - 1];
}

} // namespace

RegisterProduct registerProduct(int64_t rows, int64_t vectors, bool adjacentRows) {
  switch (vectors) {
  case 1:
    return choose<1>(rows, adjacentRows);
  case 2:
    return choose<2>(rows, adjacentRows);
  case 3:
    return choose<3>(rows, adjacentRows);
  default:
    return choose<4>(rows, adjacentRows);
  }
}

} // namespace dlc::rt
