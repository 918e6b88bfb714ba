// AMX's tiles: matrices of 16 rows by 64 bytes, two of which are multiplied in one instruction
// (Intel SDM volume 1, chapter 18). Of the factors the first has a row for each row of the product,
// 32 elements of bf16 along what is summed over; the second a row for each pair of these, of 16
// columns.
#pragma once

#include "runtime/core/HostFeatures.h"
#include "runtime/core/KernelPlanner.h"

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Between `#pragma clang attribute push(DLC_TILES, apply_to = function)` and `pop`: functions that
/// run where hasTiles() alone.
#define DLC_TILES __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")))

namespace dlc::rt::tiles {

/// The implementations' name in plans.
inline constexpr const char *name = "tiles:amx_bf16";

constexpr int64_t side = 16;        // rows, columns of a product, channels of a block
constexpr int64_t rowElements = 32; // of bf16, along what is summed over
constexpr int64_t rowBytes = 64, tileBytes = side * rowBytes, tileSums = side * side;
/// Bounds of extents, paddings and how far a window reaches, so that places fit 32 bits, and of
/// what a request's plan grows with.
constexpr int64_t mostExtent = int64_t{1} << 28, mostElements = int64_t{1} << 31;
constexpr unsigned mostThreads = 1024;
/// Elements of a window, and phases of a data gradient's steps, each of which is planned by itself.
constexpr int64_t mostTaps = 4096, mostPhases = 64;

/// True if the processor has the instructions.
inline bool hasTiles() {
  static const bool has =
      missingFeatures({"avx512f", "avx512bw", "avx512vl", "avx512bf16", "amx-tile", "amx-bf16"})
          .empty();
  return has;
}

/// False of windows of very many elements or steps, if a place in an image or in a window around it
/// could need more than 32 bits, and of what no memory holds.
inline bool isBounded(const KernelRequest &request) {
  auto areSmall = [](const std::vector<int64_t> &values) {
    return std::ranges::all_of(values, [](int64_t value) { return value < mostExtent; });
  };
  const std::vector<int64_t> &window = request.operands[*weightOperand(request.op)].shape;
  int64_t taps = 1, phases = 1;
  for (size_t i = 0; i < request.dilations.size(); ++i) {
    if (window[i + 2] > mostTaps || request.dilations[i] > mostExtent / mostTaps ||
        request.strides[i] > mostTaps)
      return false;
    taps *= window[i + 2];
    phases *= request.strides[i];
  }
  for (const OperandType &operand : request.operands) {
    int64_t elements = 1;
    for (int64_t extent : operand.shape)
      if (extent >= mostExtent || (elements *= extent) > mostElements)
        return false;
  }
  return request.threads >= 1 && request.threads <= mostThreads && taps <= mostTaps &&
         (request.op != KernelOp::ConvGradData || phases <= mostPhases) &&
         areSmall(request.paddingLow) && areSmall(request.paddingHigh);
}

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
/// two of b over some steps.
template <int rows, int columns> DLC_TILES inline void multiply(Factor a, Factor b, int64_t steps) {
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
