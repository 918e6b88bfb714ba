#include "runtime/cpu/kernels/WeightPacking.h"

#include "runtime/core/HostFeatures.h"
#include "runtime/core/ParallelFor.h"

#include <immintrin.h>

#include <algorithm>
#include <span>

#define AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512bf16")))

namespace dlc::rt {
namespace {

constexpr int64_t side = 16; // of a block, and elements of a line's pairs
constexpr int64_t pairs = 8; // of a side
constexpr int64_t tasksAtOnce = 64;

/// What a block of 16 x 16 becomes: 16 pairs each.
struct Lines {
  __m512i line[pairs];
};

/// Two rows, the first in the lower half.
AVX512_BF16 inline __m512i narrowed(const float *first, const float *second) {
  return reinterpret_cast<__m512i>(
      _mm512_cvtne2ps_pbh(_mm512_loadu_ps(second), _mm512_loadu_ps(first)));
}

/// Line k pairs the elements of rows 2k and 2k + 1.
AVX512_BF16 Lines pairRows(const float *block, int64_t stride) {
  alignas(64) int16_t order[2 * side];
  for (int16_t i = 0; i < 2 * side; ++i)
    order[i] = static_cast<int16_t>(i / 2 + i % 2 * side);
  __m512i interleave = _mm512_load_si512(order);
  Lines lines;
  for (int64_t k = 0; k < pairs; ++k)
    lines.line[k] = _mm512_permutexvar_epi16(
        interleave, narrowed(block + 2 * k * stride, block + (2 * k + 1) * stride));
  return lines;
}

/// Line k has elements 2k and 2k + 1 of all rows. Rows of 8 pairs are transposed by interleaving
/// those of one half with those of the other, until one row is left.
AVX512_BF16 Lines pairColumns(const float *block, int64_t stride) {
  alignas(64) int32_t order[2][side];
  for (int32_t i = 0; i < side; ++i) {
    order[0][i] = i / 2 + i % 2 * static_cast<int32_t>(side);
    order[1][i] = order[0][i] + static_cast<int32_t>(pairs);
  }
  __m512i lower = _mm512_load_si512(order[0]), upper = _mm512_load_si512(order[1]);
  Lines lines;
  for (int64_t k = 0; k < pairs; ++k) {
    __m512i rows = narrowed(block + k * stride, block + (k + pairs) * stride);
    // Its halves are two rows.
    lines.line[k] = _mm512_permutexvar_epi32(
        _mm512_set_epi32(15, 7, 14, 6, 13, 5, 12, 4, 11, 3, 10, 2, 9, 1, 8, 0), rows);
  }
  for (int64_t half = pairs / 2, length = 1; half > 0; half /= 2, length *= 2) {
    Lines longer;
    for (int64_t i = 0; i < half * length; ++i) {
      __m512i first = lines.line[i], second = lines.line[i + half * length];
      longer.line[2 * i] = _mm512_permutex2var_epi32(first, lower, second);
      longer.line[2 * i + 1] = _mm512_permutex2var_epi32(first, upper, second);
    }
    lines = longer;
  }
  return lines;
}

AVX512_BF16 Lines zeros() {
  Lines lines;
  for (__m512i &line : lines.line)
    line = _mm512_setzero_si512();
  return lines;
}

/// Packs a block whose rows are `stride` apart, or zeros if it is null; the lines go to these
/// offsets.
AVX512_BF16 void pack(const float *block, int64_t stride, bool pairsRows, uint16_t *to,
                      std::span<const int64_t> offsets) {
  Lines lines = !block ? zeros() : pairsRows ? pairRows(block, stride) : pairColumns(block, stride);
  for (size_t k = 0; k < offsets.size(); ++k)
    _mm512_storeu_si512(to + offsets[k], lines.line[k]);
}

bool isProcessorFit() {
  static const bool isFit = missingFeatures({"avx512bw", "avx512bf16"}).empty();
  return isFit;
}

/// Where every `step`th element of a dimension lies.
std::vector<int64_t> offsetsAlong(uint8_t dim, int64_t step, int64_t extent,
                                  const std::vector<int64_t> &shape, const Layout &layout) {
  std::vector<int64_t> offsets, index(shape.size(), 0);
  for (; index[dim] < extent; index[dim] += step)
    offsets.push_back(layout.offsetOf(shape, index));
  return offsets;
}

/// Those of the elements of the dimensions behind the first two.
std::vector<int64_t> offsetsOfWindow(const std::vector<int64_t> &shape, const Layout &layout) {
  std::vector<int64_t> offsets{0};
  for (size_t dim = 2; dim < shape.size(); ++dim) {
    std::vector<int64_t> all;
    for (int64_t outer : offsets)
      for (int64_t inner : offsetsAlong(static_cast<uint8_t>(dim), 1, shape[dim], shape, layout))
        all.push_back(outer + inner);
    offsets = std::move(all);
  }
  return offsets;
}

/// True if a weight is a row-major matrix: its window is one element.
bool isMatrix(const std::vector<int64_t> &shape, const Layout &layout) {
  return layout.isRowMajor() &&
         std::all_of(shape.begin() + 2, shape.end(), [](int64_t extent) { return extent == 1; });
}

/// True if blocks of 16 x 16 are all there is.
bool isInBlocks(const Layout &layout) {
  return layout.blocks.size() == 2 && layout.blocks[0].dim + layout.blocks[1].dim == 1 &&
         layout.blocks[0].size == side && layout.blocks[1].size == side;
}

/// True if pairs of the first two dimensions lie in lines of 16.
bool isInPairs(const Layout &layout) {
  size_t count = layout.blocks.size();
  if (count < 2 || std::ranges::any_of(layout.blocks, [](auto block) { return block.dim > 1; }))
    return false;
  const Layout::Block &line = layout.blocks[count - 2], &pair = layout.blocks[count - 1];
  return pair.size == 2 && line.dim != pair.dim && line.size % side == 0;
}

} // namespace

std::optional<WeightPacking> WeightPacking::of(const KernelRequest &request) {
  if (request.op != KernelOp::Reorder || request.operands.size() != 2 || !isProcessorFit())
    return std::nullopt;
  const OperandType &source = request.operands[0], &packed = request.operands[1];
  const std::vector<int64_t> &shape = source.shape;
  if (source.dtype != DType::F32 || packed.dtype != DType::BF16 || packed.shape != shape ||
      shape.size() < 2 || !source.layout || !packed.layout || !isInPairs(*packed.layout) ||
      shape[0] % side != 0 || shape[1] % side != 0)
    return std::nullopt;
  bool isBlocked = isInBlocks(*source.layout);
  if (!isBlocked && !isMatrix(shape, *source.layout))
    return std::nullopt;
  uint8_t pairedDim = packed.layout->blocks.back().dim, linedDim = 1 - pairedDim;
  WeightPacking packing;
  packing.rowStride = isBlocked ? side : shape[1];
  packing.pairsRows = pairedDim == (isBlocked ? source.layout->blocks.front().dim : 0);
  auto blocksOf = [&](uint8_t dim, int64_t step) {
    int64_t padded = packed.layout->outerExtent(shape, dim) * packed.layout->blockOf(dim);
    return Blocks{offsetsAlong(dim, side, shape[dim], shape, *source.layout),
                  offsetsAlong(dim, step, padded, shape, *packed.layout)};
  };
  packing.paired = blocksOf(pairedDim, 2);
  packing.lined = blocksOf(linedDim, side);
  packing.fromWindow = offsetsOfWindow(shape, *source.layout);
  packing.toWindow = offsetsOfWindow(shape, *packed.layout);
  return packing;
}

void WeightPacking::packBlock(int64_t task, const float *from, uint16_t *to) const {
  auto windows = static_cast<int64_t>(fromWindow.size());
  auto lines = static_cast<int64_t>(lined.to.size());
  int64_t window = task % windows, line = task / windows % lines, block = task / windows / lines;
  bool exists = line < lined.count() && block < paired.count();
  const float *source =
      exists ? from + paired.from[block] + lined.from[line] + fromWindow[window] : nullptr;
  std::span<const int64_t> offsets = std::span(paired.to).subspan(block * pairs);
  pack(source, rowStride, pairsRows, to + lined.to[line] + toWindow[window],
       offsets.first(std::min<size_t>(offsets.size(), pairs)));
}

void WeightPacking::run(const void *from, void *to) const {
  auto blocks = (static_cast<int64_t>(paired.to.size()) + pairs - 1) / pairs;
  auto tasks = blocks * static_cast<int64_t>(lined.to.size() * fromWindow.size());
  parallelFor(tasks, tasksAtOnce, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task)
      packBlock(task, static_cast<const float *>(from), static_cast<uint16_t *>(to));
  });
}

} // namespace dlc::rt
