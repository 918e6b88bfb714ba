// Products of matrices whose sums stay in registers: some rows of c, by some vectors.
//
// Rows and vectors are so many that all of a processor's registers are in use: then one load of a
// or b serves several multiplications, and enough sums are under way to hide how long each takes.
//
// Whatever this file includes, but for others like it, must stand ahead of the pragma in the files
// that compile it (WinogradAvx512.cpp).
#pragma once

#include "runtime/cpu/kernels/ProductPart.h"

#include <array>
#include <cstdint>
#include <span>
#include <utility>

namespace dlc::rt {

/// Strides in elements. One of a's is 1.
struct ProductStrides {
  int64_t aRow, aStep, bStep, cRow;
};

/// c = a b, or c + a b, summed over all parts in order. The lanes of b and c are consecutive.
using RegisterProduct = void (*)(const float *a, const float *b, float *c,
                                 std::span<const ProductPart> parts, const ProductStrides &strides,
                                 bool adds);

template <typename Unit, int64_t Rows, int64_t Vectors, bool AdjacentRows>
void multiply(const float *a, const float *b, float *c, std::span<const ProductPart> parts,
              const ProductStrides &strides, bool adds) {
  using Vector = typename Unit::Vector;
  Vector sums[Rows][Vectors];
#pragma clang loop unroll(full)
  for (int64_t row = 0; row < Rows; ++row)
#pragma clang loop unroll(full)
    for (int64_t v = 0; v < Vectors; ++v)
      sums[row][v] = adds ? Unit::load(c + row * strides.cRow + v * Unit::lanes) : Unit::zero();
  const int64_t aRow = AdjacentRows ? 1 : strides.aRow, aStep = AdjacentRows ? strides.aStep : 1;
  for (const ProductPart &part : parts) {
    const float *ofA = a + part.a * (AdjacentRows ? aStep : aRow);
    const float *ofB = b + part.b * strides.bStep;
    for (int64_t step = 0; step < part.steps; ++step, ofA += aStep, ofB += strides.bStep) {
      Vector lanes[Vectors];
#pragma clang loop unroll(full)
      for (int64_t v = 0; v < Vectors; ++v)
        lanes[v] = Unit::load(ofB + v * Unit::lanes);
#pragma clang loop unroll(full)
      for (int64_t row = 0; row < Rows; ++row) {
        Vector factor = Unit::splat(ofA[row * aRow]);
#pragma clang loop unroll(full)
        for (int64_t v = 0; v < Vectors; ++v)
          sums[row][v] = Unit::addProduct(sums[row][v], factor, lanes[v]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int64_t row = 0; row < Rows; ++row)
#pragma clang loop unroll(full)
    for (int64_t v = 0; v < Vectors; ++v)
      Unit::store(c + row * strides.cRow + v * Unit::lanes, sums[row][v]);
}

template <typename Unit, int64_t Vectors, bool AdjacentRows, size_t... Rows>
constexpr auto productsOfRows(std::index_sequence<Rows...>) {
  return std::array<RegisterProduct, sizeof...(Rows)>{
      multiply<Unit, static_cast<int64_t>(Rows) + 1, Vectors, AdjacentRows>...};
}

/// The product of so many rows and vectors, `rows` <= Unit::mostRows(vectors), `vectors` <=
/// Unit::mostVectors. `adjacentRows`: aRow is 1, else aStep is.
template <typename Unit, int64_t Vectors = Unit::mostVectors>
RegisterProduct registerProduct(int64_t rows, int64_t vectors, bool adjacentRows) {
  if constexpr (Vectors > 1)
    if (vectors < Vectors)
      return registerProduct<Unit, Vectors - 1>(rows, vectors, adjacentRows);
  using Rows = std::make_index_sequence<static_cast<size_t>(Unit::mostRows(Vectors))>;
  static constexpr auto adjacent = productsOfRows<Unit, Vectors, true>(Rows());
  static constexpr auto apart = productsOfRows<Unit, Vectors, false>(Rows());
  return (adjacentRows ? adjacent : apart)[static_cast<size_t>(rows) - 1];
}

} // namespace dlc::rt
