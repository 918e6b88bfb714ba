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
/// dy as it is packed and the sums of two chunks stay in the second-level cache, x as it is packed
/// in the first: elements of dy and steps of a product at one time.
constexpr int64_t packedElements = 256 * 1024, mostStepsAtOnce = 16, leastStepsAtOnce = 8;
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
  int64_t most = std::clamp(packedElements / (task.blocks * side * tilePixels), leastStepsAtOnce,
                            mostStepsAtOnce);
  return ceilDiv(all, ceilDiv(all, most));
}

/// What a task has of its own.
uint64_t TileFilterGradient::packBytes() const {
  int64_t tiles = mostSteps * (2 * ceilDiv(mostBlocks, 2) + 2);
  int64_t ofPixel = sizeof(int64_t) + placeBytes;
  return static_cast<uint64_t>(tiles * tileBytes + mostSteps * tilePixels * ofPixel);
}

uint64_t TileFilterGradient::workspaceBytes() const {
  auto sums = static_cast<uint64_t>(keepsSums ? shares * sumElements() : 0) * sizeof(float);
  return sums + tasks.size() * packBytes();
}

uint64_t TileFilterGradient::flops() const {
  return 2 * static_cast<uint64_t>(sumElements() * dy.pixels());
}

void TileFilterGradient::run(std::span<void *const> buffers) const {
  parallelFor(static_cast<int64_t>(tasks.size()), 1,
              [&](int64_t task, int64_t) { runTask(tasks[static_cast<size_t>(task)], buffers); });
  if (shares > 1)
    parallelFor(sumElements() / tileSums, side, [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile)
        addShares(tile, buffers);
    });
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

/// A tile with a row per pair of pixels.
void packPairs(const uint16_t *block, const int64_t *offsets, std::byte *to) {
  for (int64_t i = 0; i < side; ++i)
    _mm512_store_si512(to + i * rowBytes,
                       pairOf(pixelAt(block, offsets[2 * i]), pixelAt(block, offsets[2 * i + 1])));
}

/// The lowest bits, up to 16.
__mmask16 lowest(int64_t bits) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(bits, 0, side)) - 1);
}

/// Sums of one or two tiles of dy's channels by as many columns.
template <int rows, int columns>
void sumPixels(const std::byte *a, const std::byte *b, int64_t steps, float *sums,
               SumSteps sumSteps, bool adds) {
  if (adds)
    loadSums<rows, columns>(sums, sumSteps);
  else
    clearSums();
  multiply<rows, columns>({a, 2 * tileBytes, tileBytes}, {b, 2 * tileBytes, tileBytes}, steps);
  storeSums<rows, columns>(sums, sumSteps);
}

} // namespace

/// Of a pass's pixels what a tap finds in x, and zeros up to whole steps.
void TileFilterGradient::placeTap(const Tap &tap, const Pass &pass, const Memory &memory) const {
  const Places &places = memory.places;
  int64_t shift = x.offset(tap.from);
  for (int64_t i = 0; i < pass.pixels; ++i) {
    bool isPixel = isWithin(places.depth[i], tap.from[0], x.extents[0]) &&
                   isWithin(places.row[i], tap.from[1], x.extents[1]) &&
                   (lineElements > 0 || isWithin(places.column[i], tap.from[2], x.extents[2]));
    memory.ofTap[i] = isPixel ? places.ofSource[i] + shift : absent;
  }
  std::fill(memory.ofTap + pass.pixels, memory.ofTap + pass.steps * tilePixels, absent);
}

/// The pixels of a step. Of a line those elements that the image has, which is cut off at its
/// columns.
void TileFilterGradient::packColumn(const uint16_t *source, const Tap &tap, const Column &column,
                                    const Memory &memory, int64_t step, std::byte *to) const {
  const int64_t *offsets = memory.ofTap + step * tilePixels;
  if (lineElements == 0)
    return packPairs(source + column.element, offsets, to);
  const int32_t *coordinates = memory.places.column + step * tilePixels;
  auto load = [&](int64_t i) {
    if (offsets[i] == absent)
      return _mm512_setzero_si512();
    int64_t first = (coordinates[i] + tap.from[2]) * x.channels + column.element;
    int64_t end = x.extents[2] * x.channels - first;
    __mmask16 mask = lowest(std::min(end, column.elements)) & ~lowest(-first);
    const uint16_t *from = source + (mask ? offsets[i] + column.element : 0);
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
  };
  for (int64_t i = 0; i < side; ++i)
    _mm512_store_si512(to + i * rowBytes,
                       _mm512_or_si512(load(2 * i), _mm512_slli_epi32(load(2 * i + 1), 16)));
}

/// Rows of the tile are dy's channels.
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
  for (int64_t i = 0; i < count; ++i)
    _mm512_storeu_si512(to + i * step, rows.line[i]);
}

TileFilterGradient::Memory TileFilterGradient::memoryOf(const Task &task, void *workspace) const {
  auto *packs = static_cast<std::byte *>(workspace);
  Memory memory{};
  memory.result = packs + static_cast<uint64_t>(&task - tasks.data()) * packBytes();
  memory.source = memory.result + mostSteps * 2 * ceilDiv(mostBlocks, 2) * tileBytes;
  int64_t most = mostSteps * tilePixels;
  std::byte *behind = memory.source + mostSteps * 2 * tileBytes;
  memory.places = placesIn(behind, most);
  memory.ofTap = reinterpret_cast<int64_t *>(behind + most * placeBytes);
  memory.sums =
      reinterpret_cast<float *>(packs + tasks.size() * packBytes()) + task.share * sumElements();
  return memory;
}

/// Two tiles of blocks for each step, one pair of blocks after the other.
void TileFilterGradient::packBlocks(const Task &task, const uint16_t *result, int64_t steps,
                                    const Memory &memory) const {
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t i = 0; i < task.blocks; ++i)
      packChannels(result + blocks[static_cast<size_t>(task.firstBlock + i)],
                   memory.places.ofResult + step * tilePixels,
                   memory.result + ((i / 2 * steps + step) * 2 + i % 2) * tileBytes);
}

/// Sums of a chunk over the pixels that are packed.
void TileFilterGradient::sumChunk(const Task &task, const Chunk &chunk, const Pass &pass,
                                  const Memory &memory, float *gradient) const {
  alignas(rowBytes) float own[4 * tileSums];
  SumSteps sumSteps{.row = tileSums, .column = (keepsSums ? blockCount() : 2) * tileSums};
  for (int64_t i = 0; i < task.blocks; i += 2) {
    int64_t row = task.firstBlock + i, rows = std::min<int64_t>(2, task.blocks - i);
    int64_t tile = (chunk.tap * columnCount() + chunk.column) * blockCount() + row;
    float *sums = keepsSums ? memory.sums + tile * tileSums : own;
    auto sum = chunk.columns == 2 ? (rows == 2 ? sumPixels<2, 2> : sumPixels<1, 2>)
                                  : (rows == 2 ? sumPixels<2, 1> : sumPixels<1, 1>);
    sum(memory.result + i * pass.steps * tileBytes, memory.source, pass.steps, sums, sumSteps,
        !pass.isFirst);
    for (int64_t r = 0; pass.isLast && r < rows; ++r)
      for (int64_t c = 0; c < chunk.columns; ++c)
        writeTile(sums + r * sumSteps.row + c * sumSteps.column, chunk.tap, chunk.column + c,
                  row + r, gradient);
  }
}

void TileFilterGradient::runTask(const Task &task, std::span<void *const> buffers) const {
  const auto *source = static_cast<const uint16_t *>(buffers[0]);
  Memory memory = memoryOf(task, buffers[3]);
  constexpr Config config;
  _tile_loadconfig(&config);
  int64_t atOnce = stepsOf(task) * tilePixels;
  for (int64_t first = 0; first < task.pixels; first += atOnce) {
    int64_t count = std::min(atOnce, task.pixels - first);
    // Of more than one share the sums are added up first.
    Pass pass{count, ceilDiv(count, tilePixels), first == 0,
              shares == 1 && first + count == task.pixels};
    place(grid, dy, x, task.firstPixel + first, count, memory.places);
    std::fill(memory.places.ofResult + count, memory.places.ofResult + pass.steps * tilePixels,
              absent);
    packBlocks(task, static_cast<const uint16_t *>(buffers[1]), pass.steps, memory);
    for (int64_t number = task.firstChunk; number < task.firstChunk + task.chunks; ++number) {
      Chunk chunk{number / chunksOfTap(), number % chunksOfTap() * 2, 2};
      chunk.columns = std::min<int64_t>(2, columnCount() - chunk.column);
      const Tap &tap = taps[static_cast<size_t>(chunk.tap)];
      if (chunk.column == 0 || number == task.firstChunk)
        placeTap(tap, pass, memory);
      for (int64_t i = 0; i < pass.steps * chunk.columns; ++i) {
        int64_t step = i / chunk.columns, column = i % chunk.columns;
        packColumn(source, tap, columns[static_cast<size_t>(chunk.column + column)], memory, step,
                   memory.source + (2 * step + column) * tileBytes);
      }
      sumChunk(task, chunk, pass, memory, static_cast<float *>(buffers[2]));
    }
  }
  _tile_release();
}

/// A tile of the sums of all shares, in their order.
void TileFilterGradient::addShares(int64_t tile, std::span<void *const> buffers) const {
  const auto *sums = reinterpret_cast<const float *>(static_cast<const std::byte *>(buffers[3]) +
                                                     tasks.size() * packBytes()) +
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

} // namespace dlc::rt
