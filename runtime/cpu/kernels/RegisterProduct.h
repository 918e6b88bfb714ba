// Products of matrices whose sums stay in registers: some rows of c, by one to four vectors.
//
// Rows and vectors are so many that all of a processor's 32 registers are in use: then one load of
// a or b serves several multiplications, and enough sums are under way to hide how long each takes.
#pragma once

#include "runtime/cpu/kernels/TileTransforms.h"

#include <cstdint>
#include <span>

namespace dlc::rt {

constexpr int64_t vectorLanes = 16, mostVectors = 4;

/// Most rows of c beside so many vectors.
constexpr int64_t mostRows(int64_t vectors) { return vectors == 4 ? 6 : vectors == 3 ? 8 : 12; }

/// A part of the dimension that is summed over: where a and b begin, in elements behind what the
/// parts have in common.
struct ProductPart {
  int64_t a, b, steps;
};

/// Strides in elements. One of a's is 1.
struct ProductStrides {
  int64_t aRow, aStep, bStep, cRow;
};

/// c = a b, or c + a b, summed over all parts in order. The lanes of b and c are consecutive.
using RegisterProduct = void (*)(const float *a, const float *b, float *c,
                                 std::span<const ProductPart> parts, const ProductStrides &strides,
                                 bool adds);

/// The product of so many rows and vectors, `rows` <= mostRows(vectors). `adjacentRows`: aRow is 1,
/// else aStep is. Needs AVX-512.
RegisterProduct registerProduct(int64_t rows, int64_t vectors, bool adjacentRows);

} // namespace dlc::rt
