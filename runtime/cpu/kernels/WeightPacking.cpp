#include "runtime/cpu/kernels/WeightPacking.h"

#include "runtime/core/HostFeatures.h"
#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/kernels/Lines.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#define AVX512 __attribute__((target("avx512f,avx512bw")))
#define AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512bf16")))

namespace dlc::rt {
namespace {

constexpr int64_t side = 16; // of a block, and elements of a line's pairs
constexpr int64_t pairs = 8; // of a side
constexpr int64_t tasksAtOnce = 64, tasksAhead = 4;
constexpr size_t lineBytes = 64;

/// Two rows, the first in the lower half.
AVX512_BF16 inline __m512i narrowed(const float *first, const float *second) {
  return reinterpret_cast<__m512i>(
      _mm512_cvtne2ps_pbh(_mm512_loadu_ps(second), _mm512_loadu_ps(first)));
}

/// Line k pairs the elements of rows 2k and 2k + 1.
AVX512_BF16 Lines<pairs> pairRows(const float *block, int64_t stride) {
  alignas(64) int16_t order[2 * side];
  for (int16_t i = 0; i < 2 * side; ++i)
    order[i] = static_cast<int16_t>(i / 2 + i % 2 * side);
  __m512i interleave = _mm512_load_si512(order);
  Lines<pairs> lines;
  for (int64_t k = 0; k < pairs; ++k)
    lines.line[k] = _mm512_permutexvar_epi16(
        interleave, narrowed(block + 2 * k * stride, block + (2 * k + 1) * stride));
  return lines;
}

/// Line k has elements 2k and 2k + 1 of all rows.
AVX512_BF16 Lines<pairs> pairColumns(const float *block, int64_t stride) {
  Lines<pairs> lines;
  for (int64_t k = 0; k < pairs; ++k) {
    __m512i rows = narrowed(block + k * stride, block + (k + pairs) * stride);
    // Its halves are two rows.
    lines.line[k] = _mm512_permutexvar_epi32(
        _mm512_set_epi32(15, 7, 14, 6, 13, 5, 12, 4, 11, 3, 10, 2, 9, 1, 8, 0), rows);
  }
  transpose(lines);
  return lines;
}

/// A block whose rows are `stride` apart, its pairs along them or across.
AVX512_BF16 void packPairs(const float *block, int64_t stride, bool pairsRows, uint16_t *to,
                           std::span<const int64_t> offsets) {
  Lines<pairs> lines = pairsRows ? pairRows(block, stride) : pairColumns(block, stride);
  for (size_t k = 0; k < offsets.size(); ++k)
    _mm512_storeu_si512(to + offsets[k], lines.line[k]);
}

/// The columns of a block.
AVX512 void packColumns(const float *block, int64_t stride, float *to,
                        std::span<const int64_t> offsets) {
  Lines<side> lines;
  for (int64_t k = 0; k < side; ++k)
    lines.line[k] = _mm512_loadu_si512(block + k * stride);
  transpose(lines);
  for (size_t k = 0; k < offsets.size(); ++k)
    _mm512_storeu_si512(to + offsets[k], lines.line[k]);
}

bool isProcessorFit(DType packed) {
  static const bool packsColumns = missingFeatures({"avx512bw"}).empty(),
                    packsPairs = missingFeatures({"avx512bw", "avx512bf16"}).empty();
  return packed == DType::BF16 ? packsPairs : packsColumns;
}

/// Where every `step`th element of a dimension lies.
std::vector<int64_t> offsetsAlong(uint8_t dim, int64_t step, int64_t extent,
                                  const std::vector<int64_t> &shape, const Layout &layout) {
  std::vector<int64_t> offsets;
  for (int64_t at = 0; at < extent; at += step)
    offsets.push_back(layout.offsetAlong(shape, dim, at));
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

/// True if elements of the first two dimensions, or pairs, lie in lines of 16.
bool isInLines(const Layout &layout, bool ofPairs) {
  size_t count = layout.blocks.size();
  if (count < (ofPairs ? 2 : 1) ||
      std::ranges::any_of(layout.blocks, [](auto block) { return block.dim > 1; }))
    return false;
  const Layout::Block &line = layout.blocks[count - (ofPairs ? 2 : 1)];
  const Layout::Block &last = layout.blocks.back();
  return line.size % side == 0 && (!ofPairs || (last.size == 2 && line.dim != last.dim));
}

} // namespace

const char *WeightPacking::nameFor(DType packed) {
  return packed == DType::BF16 ? "packing:avx512_core_bf16" : "packing:avx512_core";
}

bool WeightPacking::isName(const std::string &implementation) {
  return implementation == nameFor(DType::BF16) || implementation == nameFor(DType::F32);
}

std::unique_ptr<const WeightPacking> WeightPacking::of(const KernelRequest &request) {
  if (request.op != KernelOp::Reorder || request.operands.size() != 2)
    return nullptr;
  const OperandType &source = request.operands[0], &packed = request.operands[1];
  const std::vector<int64_t> &shape = source.shape;
  bool inPairs = packed.dtype == DType::BF16;
  if (source.dtype != DType::F32 || (!inPairs && packed.dtype != DType::F32) ||
      !isProcessorFit(packed.dtype) || packed.shape != shape || shape.size() < 2 ||
      !source.layout || !packed.layout || !isInLines(*packed.layout, inPairs) ||
      shape[0] % side != 0 || shape[1] % side != 0)
    return nullptr;
  bool isBlocked = isInBlocks(*source.layout);
  if (!isBlocked && !isMatrix(shape, *source.layout))
    return nullptr;
  uint8_t lastDim = packed.layout->blocks.back().dim;
  uint8_t linedDim = inPairs ? 1 - lastDim : lastDim, otherDim = 1 - linedDim;
  std::unique_ptr<WeightPacking> packing(new WeightPacking());
  packing->inPairs = inPairs;
  packing->rowStride = isBlocked ? side : shape[1];
  packing->alongRows = otherDim == (isBlocked ? source.layout->blocks.front().dim : 0);
  if (!inPairs && packing->alongRows)
    return nullptr; // the library copies rows as fast
  auto blocksOf = [&](uint8_t dim, int64_t step) {
    int64_t padded = packed.layout->outerExtent(shape, dim) * packed.layout->blockOf(dim);
    return Blocks{offsetsAlong(dim, side, shape[dim], shape, *source.layout),
                  offsetsAlong(dim, step, padded, shape, *packed.layout)};
  };
  packing->summed = blocksOf(otherDim, inPairs ? 2 : 1);
  packing->lined = blocksOf(linedDim, side);
  packing->fromWindow = offsetsOfWindow(shape, *source.layout);
  packing->toWindow = offsetsOfWindow(shape, *packed.layout);
  // In the order in which the packed ones lie: the processor foresees what is written, but not what
  // is read.
  packing->linesAreOuter =
      packing->lines() > 1 && (packing->blocks() == 1 ||
                               packing->lined.to[1] > packing->summed.to[packing->linesOfBlock()]);
  return packing;
}

int64_t WeightPacking::linesOfBlock() const { return inPairs ? pairs : side; }

int64_t WeightPacking::blocks() const {
  return (static_cast<int64_t>(summed.to.size()) + linesOfBlock() - 1) / linesOfBlock();
}

int64_t WeightPacking::lines() const { return static_cast<int64_t>(lined.to.size()); }

const float *WeightPacking::sourceOf(const Place &place, const float *from) const {
  bool exists = place.line < lined.count() && place.block < summed.count();
  return exists
             ? from + summed.from[place.block] + lined.from[place.line] + fromWindow[place.window]
             : nullptr;
}

void WeightPacking::packBlock(const Place &place, const float *source, void *to) const {
  std::span<const int64_t> offsets = std::span(summed.to).subspan(place.block * linesOfBlock());
  offsets = offsets.first(std::min<size_t>(offsets.size(), linesOfBlock()));
  int64_t first = lined.to[place.line] + toWindow[place.window];
  if (!source) {
    size_t element = inPairs ? sizeof(uint16_t) : sizeof(float);
    for (int64_t offset : offsets)
      std::memset(static_cast<std::byte *>(to) + (first + offset) * element, 0, lineBytes);
  } else if (inPairs) {
    packPairs(source, rowStride, alongRows, static_cast<uint16_t *>(to) + first, offsets);
  } else {
    packColumns(source, rowStride, static_cast<float *>(to) + first, offsets);
  }
}

WeightPacking::Place WeightPacking::placeOf(int64_t task) const {
  auto windows = static_cast<int64_t>(fromWindow.size());
  int64_t outer = task / windows;
  return linesAreOuter ? Place{outer % blocks(), outer / blocks(), task % windows}
                       : Place{outer / lines(), outer % lines(), task % windows};
}

void WeightPacking::advance(Place &place) const {
  if (++place.window < static_cast<int64_t>(fromWindow.size()))
    return;
  place.window = 0;
  auto [inner, outer] =
      linesAreOuter ? std::pair(&place.block, &place.line) : std::pair(&place.line, &place.block);
  if (++*inner == (linesAreOuter ? blocks() : lines())) {
    *inner = 0;
    ++*outer;
  }
}

void WeightPacking::run(std::span<void *const> buffers) const {
  const auto *weight = static_cast<const float *>(buffers[0]);
  int64_t tasks = blocks() * lines() * static_cast<int64_t>(fromWindow.size());
  parallelFor(tasks, tasksAtOnce, [&](int64_t begin, int64_t end) {
    Place place = placeOf(begin), ahead = placeOf(std::min(begin + tasksAhead, end - 1));
    for (int64_t task = begin; task < end; ++task, advance(place)) {
      if (task + tasksAhead < end) {
        if (const float *next = sourceOf(ahead, weight))
          for (int64_t row = 0; row < side; ++row)
            _mm_prefetch(next + row * rowStride, _MM_HINT_T0);
        advance(ahead);
      }
      packBlock(place, sourceOf(place, weight), buffers[1]);
    }
  });
}

} // namespace dlc::rt
