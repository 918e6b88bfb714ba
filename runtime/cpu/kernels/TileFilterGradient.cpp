#include "runtime/cpu/kernels/TileFilterGradient.h"

#include "runtime/core/CeilDiv.h"
#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/kernels/Lines.h"

#include <algorithm>
#include <limits>

namespace dlc::rt {
namespace {

using namespace tiles;

constexpr int64_t tilePixels = rowElements;
/// The place of a pixel of zeros.
constexpr int64_t absent = std::numeric_limits<int64_t>::min();
/// dy as it is packed stays in the second-level cache: its elements and steps of a product at one
/// time. Of few blocks of dy's channels x as it is packed for two chunks stays in the first.
constexpr int64_t packedElements = 512 * 1024, mostStepsAtOnce = 64, leastStepsAtOnce = 8,
                  fewBlocks = 11, stepsOfFewBlocks = 12;
/// Of sums, most that each share has of its own, and pixels that are worth a share.
constexpr int64_t mostShareElements = 256 * 1024, leastSharePixels = 1024;

} // namespace

std::optional<std::vector<Layout>> TileFilterGradient::layouts(const KernelRequest &request,
                                                               LayoutFamily family, bool inRows) {
  if (request.op != KernelOp::ConvGradFilter || request.groups != 1 ||
      family == LayoutFamily::Plain || !hasTiles() || !isBounded(request))
    return std::nullopt;
  const std::vector<OperandType> &operands = request.operands;
  const std::vector<int64_t> &window = operands[2].shape;
  bool isElement = std::all_of(window.begin() + 2, window.end(), [](int64_t n) { return n == 1; });
  bool isFit = operands[0].dtype == DType::BF16 && operands[1].dtype == DType::BF16 &&
               operands[2].dtype == DType::F32 && window[0] == operands[1].shape[1] &&
               window[1] == operands[0].shape[1] && operands[0].shape[0] == operands[1].shape[0] &&
               window[0] % side == 0;
  bool isInBlocks = window[1] % side == 0;
  if (isInBlocks)
    isFit = isFit && (isElement || !inRows);
  else
    isFit =
        isFit && !inRows && family == LayoutFamily::ChannelsLast && request.dilations.back() == 1;
  if (!isFit)
    return std::nullopt;
  size_t rank = window.size();
  Layout gradient = Layout::rowMajor(rank);
  if (!isInBlocks) {
    std::rotate(gradient.order.begin() + 1, gradient.order.begin() + 2, gradient.order.end());
    gradient.blocks = {{0, side}};
  } else if (!inRows) {
    gradient.blocks = {{1, side}, {0, side}};
  }
  std::vector<Layout> layouts{layoutIn(family, rank, side), layoutIn(family, rank, side), gradient};
  return ifWanted(request, std::move(layouts));
}

std::unique_ptr<const TileFilterGradient> TileFilterGradient::of(const KernelRequest &request) {
  for (LayoutFamily family : {LayoutFamily::Blocked, LayoutFamily::ChannelsLast})
    for (bool inRows : {false, true})
      if (hasLayouts(request) && layouts(request, family, inRows))
        return std::unique_ptr<const TileFilterGradient>(new TileFilterGradient(request));
  return nullptr;
}

TileFilterGradient::TileFilterGradient(const KernelRequest &request)
    : x(request.operands[0]), dy(request.operands[1]),
      grid{.counts = dy.extents, .sourceStep = lifted(request.strides, 1)},
      threads(request.threads) {
  const Layout &layout = *request.operands[2].layout;
  const std::vector<int64_t> &window = request.operands[2].shape;
  inRows = layout.blocks.empty();
  dyStep = layout.offsetAlong(window, 0, side);
  for (int64_t channel = 0; channel < dy.channels; channel += side)
    blocks.push_back(
        request.operands[1].layout->offsetAlong(request.operands[1].shape, 1, channel));
  Triple extents = lifted(std::span(window).subspan(2), 1), padding = lifted(request.paddingLow, 0),
         dilation = lifted(request.dilations, 1);
  if (x.channels % side != 0) {
    lineElements = extents[2] * x.channels;
    extents[2] = 1;
    for (int64_t element = 0; element < lineElements; element += side)
      columns.push_back({element, std::min(side, lineElements - element), element * side});
  } else {
    const OperandType &source = request.operands[0];
    for (int64_t channel = 0; channel < x.channels; channel += side)
      columns.push_back({source.layout->offsetAlong(source.shape, 1, channel), side,
                         layout.offsetAlong(window, 1, channel)});
  }
  forEachPlace(extents, [&](const Triple &at) {
    Tap tap{};
    for (size_t d = 0; d < 3; ++d)
      tap.from[d] = at[d] * dilation[d] - padding[d];
    std::vector<int64_t> index(window.size(), 0);
    std::copy(at.end() - static_cast<std::ptrdiff_t>(window.size() - 2), at.end(),
              index.begin() + 2);
    tap.gradient = layout.offsetOf(window, index);
    taps.push_back(tap);
  });
  cut();
}

void TileFilterGradient::cut() {
  auto chunks = static_cast<int64_t>(taps.size()) * chunksOfTap(), pairs = ceilDiv(blockCount(), 2);
  if (sumElements() <= mostShareElements)
    shares =
        std::clamp<int64_t>(dy.pixels() / leastSharePixels, 1, threads * (threads > 4 ? 1 : 2));
  // What is cut is packed once, the other once for each part.
  bool cutsChunks = 2 * chunks >= blockCount();
  int64_t parts = std::min(ceilDiv(threads, shares), cutsChunks ? chunks : pairs);
  int64_t allSteps = ceilDiv(dy.pixels(), tilePixels);
  for (int64_t share = 0; share < shares; ++share)
    for (int64_t part = 0; part < parts; ++part) {
      Task task{.share = share,
                .firstPixel = allSteps * share / shares * tilePixels,
                .pixels = 0,
                .firstBlock = 0,
                .blocks = blockCount(),
                .firstChunk = 0,
                .chunks = chunks};
      int64_t end = std::min(allSteps * (share + 1) / shares * tilePixels, dy.pixels());
      task.pixels = end - task.firstPixel;
      if (cutsChunks) {
        task.firstChunk = chunks * part / parts;
        task.chunks = chunks * (part + 1) / parts - task.firstChunk;
      } else {
        task.firstBlock = 2 * (pairs * part / parts);
        task.blocks = std::min(2 * (pairs * (part + 1) / parts), blockCount()) - task.firstBlock;
      }
      mostSteps = std::max(mostSteps, stepsOf(task));
      mostBlocks = std::max(mostBlocks, task.blocks);
      keepsSums = keepsSums || shares > 1 || stepsOf(task) * tilePixels < task.pixels;
      tasks.push_back(task);
    }
}

int64_t TileFilterGradient::sumElements() const {
  return static_cast<int64_t>(taps.size()) * columnCount() * blockCount() * tileSums;
}

/// Of a product over the pixels that a task has packed at one time, in as even parts as there are.
int64_t TileFilterGradient::stepsOf(const Task &task) const {
  int64_t all = ceilDiv(task.pixels, tilePixels);
  int64_t most = task.blocks <= fewBlocks
                     ? stepsOfFewBlocks
                     : std::clamp(packedElements / (task.blocks * side * tilePixels),
                                  leastStepsAtOnce, mostStepsAtOnce);
  return ceilDiv(all, ceilDiv(all, most));
}

TileFilterGradient::Chunk TileFilterGradient::chunkOf(int64_t number) const {
  int64_t column = number % chunksOfTap() * 2;
  return {number / chunksOfTap(), column, std::min<int64_t>(2, columnCount() - column)};
}

/// What a thread has of its own: dy as it is packed, x for two chunks, where the pixels are, and
/// what a tap finds there.
uint64_t TileFilterGradient::ownBytes() const {
  int64_t tiles = mostSteps * (2 * ceilDiv(mostBlocks, 2) + 2 * 2);
  int64_t ofPixel = sizeof(int64_t) + placeBytes;
  return static_cast<uint64_t>(tiles * tileBytes + mostSteps * tilePixels * ofPixel);
}

uint64_t TileFilterGradient::workspaceBytes() const {
  auto sums = static_cast<uint64_t>(keepsSums ? shares * sumElements() : 0) * sizeof(float);
  return sums + static_cast<uint64_t>(threads) * ownBytes();
}

uint64_t TileFilterGradient::flops() const {
  return 2 * static_cast<uint64_t>(sumElements() * dy.pixels());
}

// What follows runs where the processor has tiles alone.
#pragma clang attribute push(DLC_TILES, apply_to = function)

namespace {

alignas(rowBytes) constexpr uint16_t zeros[side] = {};

/// 16 channels of two pixels, the first in the lower halves.
__m512i pairOf(const uint16_t *first, const uint16_t *second) {
  auto widened = [](const uint16_t *from) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(from)));
  };
  return _mm512_or_si512(widened(first), _mm512_slli_epi32(widened(second), 16));
}

const uint16_t *pixelAt(const uint16_t *images, int64_t offset) {
  return offset == absent ? zeros : images + offset;
}

/// A tile with a row per channel of a block. Offsets are those of 32 pixels.
void packChannels(const uint16_t *block, const int64_t *offsets, std::byte *to) {
  Lines<side> rows;
#pragma clang loop unroll(full)
  for (int i = 0; i < side; ++i)
    rows.line[i] = pairOf(pixelAt(block, offsets[2 * i]), pixelAt(block, offsets[2 * i + 1]));
  transpose(rows);
#pragma clang loop unroll(full)
  for (int i = 0; i < side; ++i)
    _mm512_store_si512(to + i * rowBytes, rows.line[i]);
}

/// The lowest bits, up to 16.
__mmask16 lowest(int64_t bits) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(bits, 0, side)) - 1);
}

/// Where a product's factors and sums are.
struct Product {
  const std::byte *a, *b;
  int64_t steps;
  float *sums;
  SumSteps sumSteps;
  bool adds;
};

/// Sums of one or two tiles of dy's channels by as many columns.
template <int rows, int columns, typename Between>
void sumPixels(const Product &product, Between &&between) {
  if (product.adds)
    loadSums<rows, columns>(product.sums, product.sumSteps);
  else
    clearSums();
  multiply<rows, columns>({product.a, 2 * tileBytes, tileBytes},
                          {product.b, 2 * tileBytes, tileBytes}, product.steps, between);
  storeSums<rows, columns>(product.sums, product.sumSteps);
}

} // namespace

/// Rows of the tile are dy's channels. A gradient that is too large for shares passes by the
/// caches.
void TileFilterGradient::writeTile(const float *sums, int64_t tap, int64_t column, int64_t ofDy,
                                   float *gradient) const {
  const Column &part = columns[static_cast<size_t>(column)];
  float *to = gradient + taps[static_cast<size_t>(tap)].gradient + part.gradient + ofDy * dyStep;
  Lines<side> rows;
  for (int64_t i = 0; i < side; ++i)
    rows.line[i] = _mm512_loadu_si512(sums + i * side);
  if (!inRows)
    transpose(rows);
  int64_t step = inRows ? x.channels : side, count = inRows ? side : part.elements;
  bool passesBy = shares == 1 && reinterpret_cast<uintptr_t>(to) % rowBytes == 0;
  for (int64_t i = 0; i < count; ++i)
    if (passesBy)
      _mm512_stream_si512(reinterpret_cast<__m512i *>(to + i * step), rows.line[i]);
    else
      _mm512_storeu_si512(to + i * step, rows.line[i]);
}

/// A task on a thread. What a chunk's products want of x is packed between those of the chunk
/// before.
class TileFilterGradient::TaskRun {
public:
  TaskRun(const TileFilterGradient &kernel, const Task &task, std::span<void *const> buffers,
          int64_t thread)
      : kernel(kernel), task(task), x(static_cast<const uint16_t *>(buffers[0])),
        dy(static_cast<const uint16_t *>(buffers[1])), gradient(static_cast<float *>(buffers[2])) {
    auto *workspace = static_cast<std::byte *>(buffers[3]);
    int64_t most = kernel.mostSteps * tilePixels;
    packedDy = workspace + static_cast<uint64_t>(thread) * kernel.ownBytes();
    packedX[0] = packedDy + kernel.mostSteps * 2 * ceilDiv(kernel.mostBlocks, 2) * tileBytes;
    packedX[1] = packedX[0] + kernel.mostSteps * 2 * tileBytes;
    std::byte *behind = packedX[1] + kernel.mostSteps * 2 * tileBytes;
    places = placesIn(behind, most);
    ofTap = reinterpret_cast<int64_t *>(behind + most * placeBytes);
    kept = reinterpret_cast<float *>(workspace +
                                     static_cast<uint64_t>(kernel.threads) * kernel.ownBytes()) +
           task.share * kernel.sumElements();
  }

  void run() {
    constexpr Config config;
    _tile_loadconfig(&config);
    int64_t atOnce = kernel.stepsOf(task) * tilePixels;
    for (int64_t first = 0; first < task.pixels; first += atOnce)
      runPass(first, std::min(atOnce, task.pixels - first));
    _tile_release();
    _mm_sfence();
  }

private:
  /// Of a chunk, in rows of its tiles.
  struct Packing {
    Chunk chunk;
    std::byte *to;
    int64_t row;
  };
  /// One or two blocks of dy's by a chunk's columns.
  struct Sums {
    Chunk chunk;
    int64_t block, blocks;
    const float *from;
  };

  void runPass(int64_t first, int64_t count) {
    steps = ceilDiv(count, tilePixels);
    pixels = count;
    isFirst = first == 0;
    // Of more than one share the sums are added up first.
    isLast = kernel.shares == 1 && first + count == task.pixels;
    place(kernel.grid, kernel.dy, kernel.x, task.firstPixel + first, count, places);
    std::fill(places.ofResult + count, places.ofResult + steps * tilePixels, absent);
    packBlocks();
    int64_t end = task.firstChunk + task.chunks;
    Packing next = packingOf(task.firstChunk);
    packRows(next, steps * side);
    for (int64_t number = task.firstChunk; number < end; ++number) {
      Packing ready = next;
      if (number + 1 < end)
        next = packingOf(number + 1);
      sumChunk(ready, next);
      packRows(next, steps * side);
    }
    writeDone();
  }

  /// Two tiles of blocks for each step, one pair of blocks after the other.
  void packBlocks() {
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t i = 0; i < task.blocks; ++i)
        packChannels(dy + kernel.blocks[static_cast<size_t>(task.firstBlock + i)],
                     places.ofResult + step * tilePixels,
                     packedDy + ((i / 2 * steps + step) * 2 + i % 2) * tileBytes);
  }

  Packing packingOf(int64_t number) {
    Chunk chunk = kernel.chunkOf(number);
    if (chunk.column == 0 || number == task.firstChunk)
      placeTap(kernel.taps[static_cast<size_t>(chunk.tap)]);
    return {chunk, packedX[number % 2], 0};
  }

  /// Of a pass's pixels what a tap finds in x, and zeros up to whole steps.
  void placeTap(const Tap &tap) const {
    __m512i shift = _mm512_set1_epi64(kernel.x.offset(tap.from)), none = _mm512_set1_epi64(absent);
    auto areWithin = [&](const int32_t *coordinates, size_t d) {
      __m512i at = _mm512_add_epi32(_mm512_loadu_si512(coordinates),
                                    _mm512_set1_epi32(static_cast<int32_t>(tap.from[d])));
      return _mm512_cmplt_epu32_mask(at,
                                     _mm512_set1_epi32(static_cast<int32_t>(kernel.x.extents[d])));
    };
    for (int64_t i = 0; i < steps * tilePixels; i += side) {
      uint32_t within =
          areWithin(places.depth + i, 0) & areWithin(places.row + i, 1) & lowest(pixels - i);
      if (kernel.lineElements == 0)
        within &= areWithin(places.column + i, 2);
      for (int64_t half : {int64_t{0}, side / 2}) {
        __m512i found = _mm512_add_epi64(_mm512_loadu_si512(places.ofSource + i + half), shift);
        auto mask = static_cast<__mmask8>(within >> half);
        _mm512_storeu_si512(ofTap + i + half, _mm512_mask_mov_epi64(none, mask, found));
      }
    }
  }

  /// So many more rows of each tile, if there are.
  void packRows(Packing &packing, int64_t count) const {
    count = std::min(count, steps * side - packing.row);
    if (kernel.lineElements > 0)
      packLines(packing, count);
    else if (packing.chunk.columns == 2)
      packPairs<2>(packing, count);
    else
      packPairs<1>(packing, count);
    packing.row += count;
  }

  template <int columns> void packPairs(const Packing &packing, int64_t count) const {
    std::array<const uint16_t *, columns> from;
    for (size_t i = 0; i < columns; ++i)
      from[i] = x + kernel.columns[static_cast<size_t>(packing.chunk.column) + i].element;
    const int64_t *offset = ofTap + 2 * packing.row;
    uint64_t row = static_cast<uint64_t>(packing.row), end = row + static_cast<uint64_t>(count);
    std::byte *const to = packing.to;
    for (; row < end; ++row, offset += 2) {
      std::byte *line = to + row / side * (2 * tileBytes) + row % side * rowBytes;
      int64_t first = offset[0], second = offset[1];
#pragma clang loop unroll(full)
      for (size_t i = 0; i < columns; ++i)
        _mm512_store_si512(line + i * tileBytes,
                           pairOf(pixelAt(from[i], first), pixelAt(from[i], second)));
    }
  }

  /// Of lines those elements that the image has, which is cut off at its columns.
  void packLines(const Packing &packing, int64_t count) const {
    int64_t channels = kernel.x.channels, width = kernel.x.extents[2] * channels;
    int64_t ofLine = kernel.taps[static_cast<size_t>(packing.chunk.tap)].from[2] * channels;
    for (int64_t i = 0; i < packing.chunk.columns; ++i) {
      const Column &column = kernel.columns[static_cast<size_t>(packing.chunk.column + i)];
      __mmask16 whole = lowest(column.elements);
      auto load = [&](int64_t pixel) {
        if (ofTap[pixel] == absent)
          return _mm512_setzero_si512();
        int64_t first = places.column[pixel] * channels + ofLine + column.element;
        __mmask16 mask = whole;
        if (first < 0 || first + column.elements > width)
          mask &= lowest(width - first) & ~lowest(-first);
        const uint16_t *line = x + (mask ? ofTap[pixel] + column.element : 0);
        return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, line));
      };
      for (int64_t row = packing.row; row < packing.row + count; ++row)
        _mm512_store_si512(
            packing.to + (row / side * 2 + i) * tileBytes + row % side * rowBytes,
            _mm512_or_si512(load(2 * row), _mm512_slli_epi32(load(2 * row + 1), 16)));
    }
  }

  /// Sums of a chunk over the pass's pixels, some of the next one packed at each step.
  void sumChunk(const Packing &ready, Packing &next) {
    const Chunk &chunk = ready.chunk;
    SumSteps sumSteps = stepsOfSums();
    int64_t rowsAtOnce = ceilDiv(side, ceilDiv(task.blocks, 2));
    auto between = [&] { packRows(next, rowsAtOnce); };
    for (int64_t i = 0; i < task.blocks; i += 2) {
      int64_t row = task.firstBlock + i, rows = std::min<int64_t>(2, task.blocks - i);
      int64_t tile = (chunk.tap * kernel.columnCount() + chunk.column) * kernel.blockCount() + row;
      float *sums = kernel.keepsSums ? kept + tile * tileSums : own[done.from == own[0]];
      Product product{packedDy + i * steps * tileBytes, ready.to, steps, sums, sumSteps, !isFirst};
      if (chunk.columns == 2)
        rows == 2 ? sumPixels<2, 2>(product, between) : sumPixels<1, 2>(product, between);
      else
        rows == 2 ? sumPixels<2, 1>(product, between) : sumPixels<1, 1>(product, between);
      writeDone();
      if (isLast)
        done = {chunk, row, rows, sums};
    }
  }

  SumSteps stepsOfSums() const {
    return {.row = tileSums, .column = (kernel.keepsSums ? kernel.blockCount() : 2) * tileSums};
  }

  /// Writes what the product before has summed, which by then need not be waited for.
  void writeDone() {
    SumSteps sumSteps = stepsOfSums();
    for (int64_t r = 0; r < done.blocks; ++r)
      for (int64_t c = 0; c < done.chunk.columns; ++c)
        kernel.writeTile(done.from + r * sumSteps.row + c * sumSteps.column, done.chunk.tap,
                         done.chunk.column + c, done.block + r, gradient);
    done.blocks = 0;
  }

  const TileFilterGradient &kernel;
  const Task &task;
  const uint16_t *x, *dy;
  float *gradient;
  std::byte *packedDy, *packedX[2];
  Places places;
  int64_t *ofTap;
  float *kept;                   // sums of the share
  int64_t steps = 0, pixels = 0; // of the pass
  bool isFirst = false, isLast = false;
  Sums done{};
  alignas(rowBytes) float own[2][4 * tileSums];
};

/// A tile of the sums of all shares, in their order.
void TileFilterGradient::addShares(int64_t tile, std::span<void *const> buffers) const {
  const auto *sums = reinterpret_cast<const float *>(static_cast<const std::byte *>(buffers[3]) +
                                                     static_cast<uint64_t>(threads) * ownBytes()) +
                     tile * tileSums;
  alignas(rowBytes) float all[tileSums];
  for (int64_t i = 0; i < tileSums; i += side) {
    __m512 sum = _mm512_loadu_ps(sums + i);
    for (int64_t share = 1; share < shares; ++share)
      sum = _mm512_add_ps(sum, _mm512_loadu_ps(sums + share * sumElements() + i));
    _mm512_store_ps(all + i, sum);
  }
  int64_t column = tile / blockCount();
  writeTile(all, column / columnCount(), column % columnCount(), tile % blockCount(),
            static_cast<float *>(buffers[2]));
}

#pragma clang attribute pop

void TileFilterGradient::run(std::span<void *const> buffers) const {
  onThreads(static_cast<int64_t>(tasks.size()), [&](int64_t task, int64_t thread) {
    TaskRun(*this, tasks[static_cast<size_t>(task)], buffers, thread).run();
  });
  if (shares > 1)
    parallelFor(sumElements() / tileSums, side, [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile)
        addShares(tile, buffers);
    });
}

} // namespace dlc::rt
