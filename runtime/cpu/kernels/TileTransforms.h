// Winograd's F(4 x 4, 3 x 3): sixteen results of a 3 x 3 window from 36 products instead of 144.
//
// Along one dimension a product of polynomials is evaluated at 0, a, -a, b, -b and infinity (Lavin,
// Gray: "Fast Algorithms for Convolutional Neural Networks", 2015; Toom and Cook before them). a
// and b are those for which rounding in f32 adds least: twice the error of the direct sum, where
// the usual 1 and 2 add five times. Each function transforms vectors of channels along one
// dimension; `transformTile` does so along both. `Unit` is a type of VectorUnits.h.
//
// Whatever this file includes, but for others like it, must stand ahead of the pragma in the files
// that compile it (WinogradAvx512.cpp).
#pragma once

#include "runtime/cpu/kernels/VectorUnits.h"

#include <cstddef>
#include <utility>

namespace dlc::rt::tiles {

constexpr size_t side = 4;               // of a tile of results
constexpr size_t reach = 6;              // of what such a tile depends on
constexpr size_t points = reach * reach; // where both dimensions are evaluated

constexpr float a = 0.625F, b = 1.5F, a2 = a * a, b2 = b * b;
constexpr float ofZero = 1 / (a2 * b2), ofA = 1 / (2 * a2 * (a2 - b2)),
                ofB = 1 / (2 * b2 * (b2 - a2));

/// What a tile depends on.
struct Source {
  static constexpr size_t from = reach, to = reach;
  template <typename Unit, typename Vector = typename Unit::Vector>
  DLC_INLINE static void apply(const Vector (&x)[from], Vector (&y)[to]) {
    Vector evenA = Unit::addScaled(x[4], -b2, x[2]),
           oddA = Unit::scaled(a, Unit::addScaled(x[3], -b2, x[1]));
    Vector evenB = Unit::addScaled(x[4], -a2, x[2]),
           oddB = Unit::scaled(b, Unit::addScaled(x[3], -a2, x[1]));
    y[0] = Unit::addScaled(Unit::addScaled(x[4], -(a2 + b2), x[2]), a2 * b2, x[0]);
    y[1] = evenA + oddA;
    y[2] = evenA - oddA;
    y[3] = evenB + oddB;
    y[4] = evenB - oddB;
    y[5] = Unit::addScaled(Unit::addScaled(x[5], -(a2 + b2), x[3]), a2 * b2, x[1]);
  }
};

/// A window.
struct Window {
  static constexpr size_t from = 3, to = reach;
  template <typename Unit, typename Vector = typename Unit::Vector>
  DLC_INLINE static void apply(const Vector (&x)[from], Vector (&y)[to]) {
    Vector evenA = Unit::scaled(ofA, Unit::addScaled(x[0], a2, x[2])),
           oddA = Unit::scaled(ofA * a, x[1]);
    Vector evenB = Unit::scaled(ofB, Unit::addScaled(x[0], b2, x[2])),
           oddB = Unit::scaled(ofB * b, x[1]);
    y[0] = Unit::scaled(ofZero, x[0]);
    y[1] = evenA + oddA;
    y[2] = evenA - oddA;
    y[3] = evenB + oddB;
    y[4] = evenB - oddB;
    y[5] = x[2];
  }
};

/// Products, to a tile of results.
struct Result {
  static constexpr size_t from = reach, to = side;
  template <typename Unit, typename Vector = typename Unit::Vector>
  DLC_INLINE static void apply(const Vector (&x)[from], Vector (&y)[to]) {
    Vector evenA = x[1] + x[2], oddA = x[1] - x[2], evenB = x[3] + x[4], oddB = x[3] - x[4];
    y[0] = x[0] + evenA + evenB;
    y[1] = Unit::addScaled(Unit::scaled(a, oddA), b, oddB);
    y[2] = Unit::addScaled(Unit::scaled(a2, evenA), b2, evenB);
    y[3] = Unit::addScaled(Unit::addScaled(x[5], a2 * a, oddA), b2 * b, oddB);
  }
};

/// The gradient of a tile of results, to the products' gradient: Result transposed.
struct ResultGradient {
  static constexpr size_t from = side, to = reach;
  template <typename Unit, typename Vector = typename Unit::Vector>
  DLC_INLINE static void apply(const Vector (&x)[from], Vector (&y)[to]) {
    Vector evenA = Unit::addScaled(x[0], a2, x[2]),
           oddA = Unit::scaled(a, Unit::addScaled(x[1], a2, x[3]));
    Vector evenB = Unit::addScaled(x[0], b2, x[2]),
           oddB = Unit::scaled(b, Unit::addScaled(x[1], b2, x[3]));
    y[0] = x[0];
    y[1] = evenA + oddA;
    y[2] = evenA - oddA;
    y[3] = evenB + oddB;
    y[4] = evenB - oddB;
    y[5] = x[3];
  }
};

/// The products' gradient, to that of the window: Window transposed.
struct WindowGradient {
  static constexpr size_t from = reach, to = 3;
  template <typename Unit, typename Vector = typename Unit::Vector>
  DLC_INLINE static void apply(const Vector (&x)[from], Vector (&y)[to]) {
    Vector evenA = Unit::scaled(ofA, x[1] + x[2]), oddA = Unit::scaled(ofA, x[1] - x[2]);
    Vector evenB = Unit::scaled(ofB, x[3] + x[4]), oddB = Unit::scaled(ofB, x[3] - x[4]);
    y[0] = Unit::addScaled(evenA + evenB, ofZero, x[0]);
    y[1] = Unit::addScaled(Unit::scaled(a, oddA), b, oddB);
    y[2] = Unit::addScaled(Unit::addScaled(x[5], a2, evenA), b2, evenB);
  }
};

/// `load(row, column)` and `store(row, column, vector)`, of from x from and to x to vectors.
template <typename Unit, typename Transform, typename Load, typename Store>
DLC_INLINE inline void transformTile(const Load &load, const Store &store) {
  constexpr size_t from = Transform::from, to = Transform::to;
  using Vector = typename Unit::Vector;
  Vector half[from][to];
#pragma clang loop unroll(full)
  for (size_t column = 0; column < from; ++column) {
    Vector x[from], y[to];
    for (size_t row = 0; row < from; ++row)
      x[row] = load(row, column);
    Transform::template apply<Unit>(x, y);
    for (size_t row = 0; row < to; ++row)
      half[column][row] = y[row];
  }
#pragma clang loop unroll(full)
  for (size_t row = 0; row < to; ++row) {
    Vector x[from], y[to];
    for (size_t column = 0; column < from; ++column)
      x[column] = half[column][row];
    Transform::template apply<Unit>(x, y);
    for (size_t column = 0; column < to; ++column)
      store(row, column, y[column]);
  }
}

/// Lanes whose number has the bit `Step`, of `a` with those that do not have it, of `b`.
template <typename Unit, size_t Step, size_t... Lane>
DLC_INLINE inline void exchangeLanes(typename Unit::Vector &a, typename Unit::Vector &b,
                                     std::index_sequence<Lane...>) {
  constexpr size_t lanes = sizeof...(Lane);
  auto first = __builtin_shufflevector(a, b, (Lane & Step ? lanes + (Lane ^ Step) : Lane)...);
  b = __builtin_shufflevector(a, b, (Lane & Step ? lanes + Lane : Lane ^ Step)...);
  a = first;
}

template <typename Unit, size_t Step>
DLC_INLINE inline void transposeBits(typename Unit::Vector (&rows)[Unit::lanes]) {
#pragma clang loop unroll(full)
  for (size_t row = 0; row < Unit::lanes; ++row)
    if ((row & Step) == 0)
      exchangeLanes<Unit, Step>(rows[row], rows[row + Step],
                                std::make_index_sequence<Unit::lanes>());
  if constexpr (Step > 1)
    transposeBits<Unit, Step / 2>(rows);
}

/// A matrix of vectors, as many as a vector has lanes.
template <typename Unit> DLC_INLINE inline void transpose(float *matrix) {
  constexpr auto lanes = static_cast<size_t>(Unit::lanes);
  typename Unit::Vector rows[lanes];
#pragma clang loop unroll(full)
  for (size_t row = 0; row < lanes; ++row)
    rows[row] = Unit::load(matrix + row * lanes);
  transposeBits<Unit, lanes / 2>(rows);
#pragma clang loop unroll(full)
  for (size_t row = 0; row < lanes; ++row)
    Unit::store(matrix + row * lanes, rows[row]);
}

} // namespace dlc::rt::tiles
