// AMX's tiles: matrices of 16 rows by 64 bytes, two of which are multiplied in one instruction
// (Intel SDM volume 1, chapter 18). Of the factors the first has a row for each row of the product,
// 32 elements of bf16 along what is summed over; the second a row for each pair of these, of 16
// columns.
#pragma once

#include "runtime/core/KernelPlanner.h"

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

/// Between `#pragma clang attribute push(DLC_TILES, apply_to = function)` and `pop`: functions that
/// run where hasTiles() alone.
#define DLC_TILES __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")))

namespace dlc::rt::tiles {

/// The implementations' name in plans.
inline constexpr const char *name = "tiles:amx_bf16";

constexpr int64_t side = 16;        // rows, columns of a product, channels of a block
constexpr int64_t rowElements = 32; // of bf16, along what is summed over
constexpr int64_t rowBytes = 64, tileBytes = side * rowBytes, tileSums = side * side;

/// True if the processor has the instructions.
bool hasTiles();

/// False of windows of very many elements or steps, if a place in an image or in a window around it
/// could need more than 32 bits, and of what no memory holds.
bool isBounded(const KernelRequest &request);

//===- Pixels ---------------------------------------------------------------------------------===//

/// Depth, row and column, of which images and signals lack the first ones.
using Triple = std::array<int64_t, 3>;

/// One entry for each spatial dimension, and `missing` for those that are lacked.
Triple lifted(std::span<const int64_t> values, int64_t missing);

/// `body(at)` for each place in a box of these extents, in row-major order.
template <typename Body> void forEachPlace(const Triple &extents, const Body &body) {
  for (int64_t depth = 0; depth < extents[0]; ++depth)
    for (int64_t row = 0; row < extents[1]; ++row)
      for (int64_t column = 0; column < extents[2]; ++column)
        body(Triple{depth, row, column});
}

/// Extents, and steps between neighbours in elements.
struct Images {
  explicit Images(const OperandType &operand); // with its layout
  int64_t volumes, channels, volumeStep;
  Triple extents, steps;
  int64_t pixels() const { return volumes * extents[0] * extents[1] * extents[2]; }
  int64_t offset(const Triple &at) const {
    return at[0] * steps[0] + at[1] * steps[1] + at[2] * steps[2];
  }
};

/// Pixels of a result whose windows step evenly through a source: their number along each
/// dimension, and where the first is and how far apart they are in either.
struct Grid {
  Triple counts, first{}, resultStep{1, 1, 1}, sourceStep{1, 1, 1};
};

/// Of some pixels of a grid: offsets of them in the result and of where they are in the source, and
/// their coordinates there.
struct Places {
  int64_t *ofResult, *ofSource;
  int32_t *depth, *row, *column;
};
constexpr int64_t placeBytes = 2 * sizeof(int64_t) + 3 * sizeof(int32_t);

/// Places of so many pixels each, in memory of placeBytes a pixel.
Places placesIn(std::byte *memory, int64_t pixels);

/// Writes those of `count` pixels from one on, in the order of images, rows and columns.
void place(const Grid &grid, const Images &result, const Images &source, int64_t firstPixel,
           int64_t count, const Places &places);

/// The offset of a pixel that an image lacks.
constexpr int64_t absent = std::numeric_limits<int64_t>::min();

/// Offsets of `count` pixels from one on, which may be negative, of images whose rows, slices and
/// volumes are followed by so many absent ones that they have these extents.
void placeApart(const Images &images, const Triple &extents, int64_t firstPixel, int64_t count,
                int64_t *offsets);

/// True if what is so far from a coordinate is in the image.
inline bool isWithin(int32_t at, int64_t from, int64_t extent) {
  return static_cast<uint32_t>(at + static_cast<int32_t>(from)) < static_cast<uint32_t>(extent);
}

//===- Products -------------------------------------------------------------------------------===//

/// What LDTILECFG loads: eight whole tiles.
struct alignas(64) Config {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Config) == 64);

/// Tiles of a factor: where they begin in memory, steps in bytes from a tile to the next one along
/// what is summed over, to the one beside it, and from row to row.
struct Factor {
  const std::byte *first;
  int64_t step, apart, line = rowBytes;
};

/// Adds to the sums in tiles 0 to 3, rows of two columns, those of one or two tiles of a by one or
/// two of b over some steps. `between()` is other work for the core, once a step.
template <int rows, int columns, typename Between>
DLC_TILES inline void multiply(Factor a, Factor b, int64_t steps, Between &&between) {
  for (int64_t step = 0; step < steps; ++step, a.first += a.step, b.first += b.step) {
    _tile_loadd(4, a.first, a.line);
    _tile_loadd(6, b.first, b.line);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (columns == 2) {
      _tile_loadd(7, b.first + b.apart, b.line);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (rows == 2) {
      _tile_loadd(5, a.first + a.apart, a.line);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (rows == 2 && columns == 2)
      _tile_dpbf16ps(3, 5, 7);
    between();
  }
}

/// Sums in memory: steps in elements from one tile to the next, of a row and of a column, and
/// from row to row within a tile.
struct SumSteps {
  int64_t row, column, line = side;
};

template <int rows, int columns> DLC_TILES inline void loadSums(const float *from, SumSteps steps) {
  int64_t line = steps.line * static_cast<int64_t>(sizeof(float));
  _tile_loadd(0, from, line);
  if constexpr (columns == 2)
    _tile_loadd(1, from + steps.column, line);
  if constexpr (rows == 2)
    _tile_loadd(2, from + steps.row, line);
  if constexpr (rows == 2 && columns == 2)
    _tile_loadd(3, from + steps.row + steps.column, line);
}

DLC_TILES inline void clearSums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

template <int rows, int columns> DLC_TILES inline void storeSums(float *to, SumSteps steps) {
  int64_t line = steps.line * static_cast<int64_t>(sizeof(float));
  _tile_stored(0, to, line);
  if constexpr (columns == 2)
    _tile_stored(1, to + steps.column, line);
  if constexpr (rows == 2)
    _tile_stored(2, to + steps.row, line);
  if constexpr (rows == 2 && columns == 2)
    _tile_stored(3, to + steps.row + steps.column, line);
}

} // namespace dlc::rt::tiles
