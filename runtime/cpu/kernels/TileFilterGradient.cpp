#include "runtime/cpu/kernels/TileFilterGradient.h"

#include "runtime/core/CeilDiv.h"
#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/kernels/Lines.h"

#include <algorithm>

namespace dlc::rt {
namespace {

using namespace tiles;

constexpr int64_t tilePixels = rowElements;
/// dy as it is packed stays in the second-level cache: its elements and steps of a product at one
/// time. Of few blocks of dy's channels x as it is packed for a chunk of one tap stays in the
/// first.
constexpr int64_t packedElements = 512 * 1024, mostStepsAtOnce = 64, leastStepsAtOnce = 8,
                  fewBlocks = 11, stepsOfFewBlocks = 12;
/// Of a pair of pixels of x, of a chunk's columns.
constexpr int64_t pairBytes = 2 * rowBytes;
/// Of a step of two columns of x, in products of two blocks of dy's channels.
constexpr double packingCost = 1.5;
/// Of sums, most that each share has of its own and the caches keep, and pixels that are worth a
/// share.
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
    groups.push_back({.firstTap = static_cast<int64_t>(taps.size()) - 1, .taps = 1});
  });
  groupTaps(request);
  cut();
}

/// Where windows do not step, and images with margins between them are not much larger, x is packed
/// once for a slice of the window: pairs of pixels that begin with an even one and, where taps are
/// at odd distances, with an odd one. That leaves few chunks, so that threads need shares.
void TileFilterGradient::groupTaps(const KernelRequest &request) {
  bool stepsOnce = std::ranges::all_of(request.strides, [](int64_t step) { return step == 1; });
  if (!stepsOnce || lineElements > 0 || taps.size() == 1 || sumElements() > mostShareElements)
    return;
  Triple low = lifted(request.paddingLow, 0), high = lifted(request.paddingHigh, 0), extents{};
  auto pixels = static_cast<double>(x.volumes), needed = static_cast<double>(dy.pixels());
  for (size_t d = 0; d < 3; ++d) {
    extents[d] = x.extents[d] + std::max(low[d], high[d]); // of dy's, all that see a pixel of x
    pixels *= static_cast<double>(extents[d]);
  }
  if (pixels > 2 * needed)
    return;
  std::vector<Tap> distant = taps;
  std::vector<Group> slices;
  int64_t odd = 0;
  for (size_t i = 0; i < distant.size(); ++i) {
    const Triple &from = distant[i].from;
    int64_t at = (from[0] * extents[1] + from[1]) * extents[2] + from[2];
    if (i == 0 || from[0] != distant[i - 1].from[0])
      slices.push_back({.firstTap = static_cast<int64_t>(i), .taps = 0, .from = at});
    Group &slice = slices.back();
    distant[i].distance = slice.span = at - slice.from;
    odd |= slice.span % 2;
    ++slice.taps;
  }
  int64_t most = mostStepsAtOnce * tilePixels, span = slices[0].span;
  // Of a tap and a step, in products of two blocks of dy's channels.
  auto pairs = static_cast<double>(ceilDiv(blockCount(), 2));
  double packings = (1 + static_cast<double>(span) / static_cast<double>(most)) *
                    static_cast<double>(1 + odd) / static_cast<double>(slices[0].taps);
  if (span > most || (pairs + packingCost * packings) * pixels >= (pairs + packingCost) * needed)
    return;
  taps = std::move(distant);
  groups = std::move(slices);
  apart = extents;
  parities = 1 + odd;
}

/// That products are summed over.
int64_t TileFilterGradient::pixelCount() const {
  return apart ? x.volumes * (*apart)[0] * (*apart)[1] * (*apart)[2] : dy.pixels();
}

void TileFilterGradient::cut() {
  auto chunks = static_cast<int64_t>(groups.size()) * chunksOfGroup(),
       pairs = ceilDiv(blockCount(), 2);
  if (sumElements() <= mostShareElements)
    shares =
        std::clamp<int64_t>(pixelCount() / leastSharePixels, 1, threads * (threads > 4 ? 1 : 2));
  // What is cut is packed once, the other once for each part.
  bool cutsChunks = 2 * chunks >= blockCount();
  int64_t parts = std::min(ceilDiv(threads, shares), cutsChunks ? chunks : pairs);
  int64_t allSteps = ceilDiv(pixelCount(), tilePixels);
  for (int64_t share = 0; share < shares; ++share)
    for (int64_t part = 0; part < parts; ++part) {
      Task task{.share = share,
                .firstPixel = allSteps * share / shares * tilePixels,
                .pixels = 0,
                .firstBlock = 0,
                .blocks = blockCount(),
                .firstChunk = 0,
                .chunks = chunks};
      int64_t end = std::min(allSteps * (share + 1) / shares * tilePixels, pixelCount());
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
  int64_t most = task.blocks <= fewBlocks && !apart
                     ? stepsOfFewBlocks
                     : std::clamp(packedElements / (task.blocks * side * tilePixels),
                                  leastStepsAtOnce, mostStepsAtOnce);
  return ceilDiv(all, ceilDiv(all, most));
}

TileFilterGradient::Chunk TileFilterGradient::chunkOf(int64_t number) const {
  int64_t column = number % chunksOfGroup() * 2;
  return {number / chunksOfGroup(), column, std::min<int64_t>(2, columnCount() - column)};
}

/// Pairs of pixels of a parity that are packed for a chunk.
int64_t TileFilterGradient::mostRows() const { return mostSteps * side + groups[0].span / 2; }

/// What a thread has of its own, or a task where there are fewer: dy as it is packed, x for two
/// chunks, where the pixels are, and what a group of taps finds there.
uint64_t TileFilterGradient::ownBytes() const {
  int64_t ofDy = mostSteps * 2 * ceilDiv(mostBlocks, 2) * tileBytes;
  int64_t ofX = 2 * parities * mostRows() * pairBytes;
  int64_t ofPixels = mostSteps * tilePixels * placeBytes;
  int64_t ofGroup = (2 * mostRows() + 1) * static_cast<int64_t>(sizeof(int64_t));
  return static_cast<uint64_t>(ofDy + ofX + ceilDiv(ofPixels + ofGroup, rowBytes) * rowBytes);
}

uint64_t TileFilterGradient::workspaceBytes() const {
  auto sums = static_cast<uint64_t>(keepsSums ? shares * sumElements() : 0) * sizeof(float);
  return sums + static_cast<uint64_t>(workers()) * ownBytes();
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
  Factor a, b;
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
  multiply<rows, columns>(product.a, product.b, product.steps, between);
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
  bool passesBy =
      sumElements() > mostShareElements && reinterpret_cast<uintptr_t>(to) % rowBytes == 0;
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
          int64_t worker)
      : kernel(kernel), task(task), x(static_cast<const uint16_t *>(buffers[0])),
        dy(static_cast<const uint16_t *>(buffers[1])), gradient(static_cast<float *>(buffers[2])) {
    auto *workspace = static_cast<std::byte *>(buffers[3]);
    int64_t most = kernel.mostSteps * tilePixels;
    packedDy = workspace + static_cast<uint64_t>(worker) * kernel.ownBytes();
    packedX[0] = packedDy + kernel.mostSteps * 2 * ceilDiv(kernel.mostBlocks, 2) * tileBytes;
    packedX[1] = packedX[0] + kernel.parities * parityBytes();
    std::byte *behind = packedX[1] + kernel.parities * parityBytes();
    places = placesIn(behind, most);
    ofGroup = reinterpret_cast<int64_t *>(behind + most * placeBytes);
    kept = reinterpret_cast<float *>(workspace +
                                     static_cast<uint64_t>(kernel.workers()) * kernel.ownBytes()) +
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
  /// Of a chunk, in rows of a pair of pixels each: those of a parity, how many of them are left, of
  /// which pixels, and where they go; first those of the even one.
  struct Packing {
    Chunk chunk;
    std::byte *packed, *to;
    int64_t rows, left, pixel = 0, parity = 0;
  };
  /// One or two blocks of dy's by a chunk's columns.
  struct Sums {
    int64_t tap, column, columns, block, blocks;
    const float *from;
  };

  int64_t parityBytes() const { return kernel.mostRows() * pairBytes; }

  void runPass(int64_t first, int64_t count) {
    steps = ceilDiv(count, tilePixels);
    pixels = count;
    isFirst = first == 0;
    // Of more than one share the sums are added up first.
    isLast = kernel.shares == 1 && first + count == task.pixels;
    firstPixel = task.firstPixel + first;
    if (kernel.apart)
      placeApart(kernel.dy, *kernel.apart, firstPixel, count, places.ofResult);
    else
      place(kernel.grid, kernel.dy, kernel.x, firstPixel, count, places);
    std::fill(places.ofResult + count, places.ofResult + steps * tilePixels, absent);
    packBlocks();
    int64_t end = task.firstChunk + task.chunks;
    Packing next = packingOf(task.firstChunk);
    packRows(next, kernel.parities * next.rows);
    for (int64_t number = task.firstChunk; number < end; ++number) {
      Packing ready = next;
      if (number + 1 < end)
        next = packingOf(number + 1);
      sumChunk(ready, next);
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
    const Group &group = kernel.groups[static_cast<size_t>(chunk.group)];
    int64_t rows = steps * side + group.span / 2;
    if (chunk.column == 0 || number == task.firstChunk) {
      if (kernel.apart)
        placeApart(kernel.x, *kernel.apart, firstPixel + group.from, 2 * rows + 1, ofGroup);
      else
        placeTap(kernel.taps[static_cast<size_t>(group.firstTap)]);
    }
    return {chunk, packedX[number % 2], packedX[number % 2], rows, rows};
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
        _mm512_storeu_si512(ofGroup + i + half, _mm512_mask_mov_epi64(none, mask, found));
      }
    }
  }

  /// So many more rows, if there are.
  void packRows(Packing &packing, int64_t count) const {
    while (count > 0 && packing.left > 0) {
      int64_t rows = std::min(count, packing.left);
      if (kernel.lineElements > 0)
        packLines(packing, rows);
      else if (packing.chunk.columns == 2)
        packPairs<2>(packing, rows);
      else
        packPairs<1>(packing, rows);
      count -= rows;
      packing.left -= rows;
      packing.pixel += 2 * rows;
      packing.to += rows * pairBytes;
      if (packing.left == 0 && ++packing.parity < kernel.parities) {
        packing.left = packing.rows;
        packing.pixel = packing.parity;
        packing.to = packing.packed + packing.parity * parityBytes();
      }
    }
  }

  template <int columns> void packPairs(const Packing &packing, int64_t rows) const {
    std::array<const uint16_t *, columns> from;
    for (size_t i = 0; i < columns; ++i)
      from[i] = x + kernel.columns[static_cast<size_t>(packing.chunk.column) + i].element;
    const int64_t *offset = ofGroup + packing.pixel;
    std::byte *to = packing.to;
    for (int64_t row = 0; row < rows; ++row, offset += 2, to += pairBytes) {
      int64_t first = offset[0], second = offset[1];
#pragma clang loop unroll(full)
      for (size_t i = 0; i < columns; ++i)
        _mm512_store_si512(to + i * rowBytes,
                           pairOf(pixelAt(from[i], first), pixelAt(from[i], second)));
    }
  }

  /// Of lines those elements that the image has, which is cut off at its columns.
  void packLines(const Packing &packing, int64_t rows) const {
    const Chunk &chunk = packing.chunk;
    int64_t channels = kernel.x.channels, width = kernel.x.extents[2] * channels;
    const Group &group = kernel.groups[static_cast<size_t>(chunk.group)];
    int64_t ofLine = kernel.taps[static_cast<size_t>(group.firstTap)].from[2] * channels;
    for (int64_t i = 0; i < chunk.columns; ++i) {
      const Column &column = kernel.columns[static_cast<size_t>(chunk.column + i)];
      __mmask16 whole = lowest(column.elements);
      auto load = [&](int64_t pixel) {
        if (ofGroup[pixel] == absent)
          return _mm512_setzero_si512();
        int64_t first = places.column[pixel] * channels + ofLine + column.element;
        __mmask16 mask = whole;
        if (first < 0 || first + column.elements > width)
          mask &= lowest(width - first) & ~lowest(-first);
        const uint16_t *line = x + (mask ? ofGroup[pixel] + column.element : 0);
        return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, line));
      };
      for (int64_t row = 0; row < rows; ++row) {
        int64_t pixel = packing.pixel + 2 * row;
        _mm512_store_si512(packing.to + row * pairBytes + i * rowBytes,
                           _mm512_or_si512(load(pixel), _mm512_slli_epi32(load(pixel + 1), 16)));
      }
    }
  }

  /// Sums of a chunk over the pass's pixels, some of the next one packed at each step.
  void sumChunk(const Packing &ready, Packing &next) {
    const Group &group = kernel.groups[static_cast<size_t>(ready.chunk.group)];
    int64_t products = group.taps * ceilDiv(task.blocks, 2);
    int64_t rowsAtOnce = ceilDiv(kernel.parities * next.rows, products * steps);
    auto between = [&] { packRows(next, rowsAtOnce); };
    for (int64_t tap = group.firstTap; tap < group.firstTap + group.taps; ++tap)
      sumTap(tap, ready, between);
  }

  template <typename Between>
  void sumTap(int64_t tap, const Packing &ready, const Between &between) {
    const Chunk &chunk = ready.chunk;
    int64_t distance = kernel.taps[static_cast<size_t>(tap)].distance;
    const std::byte *b = ready.packed + distance % 2 * parityBytes() + distance / 2 * pairBytes;
    for (int64_t i = 0; i < task.blocks; i += 2) {
      int64_t row = task.firstBlock + i, rows = std::min<int64_t>(2, task.blocks - i);
      int64_t tile = (tap * kernel.columnCount() + chunk.column) * kernel.blockCount() + row;
      // While the sums before wait to be written, they have one half of their own memory.
      float *sums = kernel.keepsSums ? kept + tile * tileSums : own[done.from == own[0]];
      Product product{{packedDy + i * steps * tileBytes, 2 * tileBytes, tileBytes},
                      {b, side * pairBytes, rowBytes, pairBytes},
                      steps,
                      sums,
                      stepsOfSums(),
                      !isFirst};
      if (chunk.columns == 2)
        rows == 2 ? sumPixels<2, 2>(product, between) : sumPixels<1, 2>(product, between);
      else
        rows == 2 ? sumPixels<2, 1>(product, between) : sumPixels<1, 1>(product, between);
      writeDone();
      if (isLast)
        done = {tap, chunk.column, chunk.columns, row, rows, sums};
    }
  }

  SumSteps stepsOfSums() const {
    return {.row = tileSums, .column = (kernel.keepsSums ? kernel.blockCount() : 2) * tileSums};
  }

  /// Writes what the product before has summed, which by then need not be waited for.
  void writeDone() {
    SumSteps sumSteps = stepsOfSums();
    for (int64_t r = 0; r < done.blocks; ++r)
      for (int64_t c = 0; c < done.columns; ++c)
        kernel.writeTile(done.from + r * sumSteps.row + c * sumSteps.column, done.tap,
                         done.column + c, done.block + r, gradient);
    done.blocks = 0;
  }

  const TileFilterGradient &kernel;
  const Task &task;
  const uint16_t *x, *dy;
  float *gradient;
  std::byte *packedDy, *packedX[2];
  Places places;
  int64_t *ofGroup;
  float *kept;                                   // sums of the share
  int64_t firstPixel = 0, pixels = 0, steps = 0; // of the pass
  bool isFirst = false, isLast = false;
  Sums done{};
  alignas(rowBytes) float own[2][4 * tileSums];
};

/// A tile of the sums of all shares, in their order.
void TileFilterGradient::addShares(int64_t tile, std::span<void *const> buffers) const {
  const auto *sums =
      reinterpret_cast<const float *>(static_cast<const std::byte *>(buffers[3]) +
                                      static_cast<uint64_t>(workers()) * ownBytes()) +
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
    int64_t worker = workers() < threads ? task : thread;
    TaskRun(*this, tasks[static_cast<size_t>(task)], buffers, worker).run();
  });
  if (shares > 1)
    parallelFor(sumElements() / tileSums, side, [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile)
        addShares(tile, buffers);
    });
}

} // namespace dlc::rt
