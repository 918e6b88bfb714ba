#include "runtime/cpu/kernels/TileFilterGradient.h"

#include "runtime/core/CeilDiv.h"
#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/kernels/Lines.h"
#include "runtime/cpu/kernels/Tiles.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

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

TileFilterGradient::Images::Images(const OperandType &operand) {
  const std::vector<int64_t> &shape = operand.shape;
  size_t rank = shape.size();
  auto step = [&](size_t dim, int64_t elements) {
    std::vector<int64_t> index(rank, 0);
    index[dim] = elements;
    return operand.layout->offsetOf(shape, index);
  };
  volumes = shape[0];
  depth = rank == 5 ? shape[2] : 1;
  rows = rank >= 4 ? shape[rank - 2] : 1;
  columns = shape[rank - 1];
  volumeStep = step(0, 1);
  depthStep = rank == 5 ? step(2, 1) : 0;
  rowStep = rank >= 4 ? step(rank - 2, 1) : 0;
  columnStep = step(rank - 1, 1);
  channels = shape[1];
  for (int64_t channel = 0; channel < shape[1]; channel += side)
    blocks.push_back(step(1, channel));
}

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
  for (size_t i = 0; i < layouts.size(); ++i)
    if (operands[i].layout && *operands[i].layout != layouts[i])
      return std::nullopt;
  return layouts;
}

std::unique_ptr<const TileFilterGradient> TileFilterGradient::of(const KernelRequest &request) {
  bool isGiven = std::ranges::all_of(
      request.operands, [](const OperandType &operand) { return operand.layout.has_value(); });
  for (LayoutFamily family : {LayoutFamily::Blocked, LayoutFamily::ChannelsLast})
    for (bool inRows : {false, true})
      if (isGiven && layouts(request, family, inRows))
        return std::unique_ptr<const TileFilterGradient>(new TileFilterGradient(request));
  return nullptr;
}

TileFilterGradient::TileFilterGradient(const KernelRequest &request)
    : x(request.operands[0]), dy(request.operands[1]), threads(request.threads) {
  const OperandType &gradient = request.operands[2];
  const std::vector<int64_t> &window = gradient.shape;
  inRows = gradient.layout->blocks.empty();
  size_t rank = window.size();
  std::vector<int64_t> index(rank, 0);
  auto offset = [&] { return gradient.layout->offsetOf(window, index); };
  index[0] = side;
  dyStep = offset();
  // Of images two, of signals three leading dimensions of extent 1 are missing.
  std::array<int64_t, 3> extent{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  size_t missing = 5 - rank;
  for (size_t i = 0; i + 2 < rank; ++i) {
    extent[missing + i] = window[i + 2];
    stride[missing + i] = request.strides[i];
    padding[missing + i] = request.paddingLow[i];
    dilation[missing + i] = request.dilations[i];
  }
  std::tie(strideDepth, strideRow, strideColumn) = std::tuple_cat(stride);
  std::tie(paddingDepth, paddingRow, paddingColumn) = std::tuple_cat(padding);
  if (x.channels % side != 0) {
    lineElements = extent[2] * x.channels;
    extent[2] = 1;
    for (int64_t element = 0; element < lineElements; element += side)
      columns.push_back({element, std::min(side, lineElements - element), element * side});
  }
  for (int64_t block = 0; block < x.count() && lineElements == 0; ++block) {
    index = std::vector<int64_t>(rank, 0);
    index[1] = block * side;
    columns.push_back({x.blocks[static_cast<size_t>(block)], side, offset()});
  }
  for (int64_t depth = 0; depth < extent[0]; ++depth)
    for (int64_t row = 0; row < extent[1]; ++row)
      for (int64_t column = 0; column < extent[2]; ++column) {
        std::array<int64_t, 3> at{depth, row, column};
        index = std::vector<int64_t>(rank, 0);
        std::copy(at.begin() + static_cast<std::ptrdiff_t>(missing), at.end(), index.begin() + 2);
        int64_t down = depth * dilation[0], on = row * dilation[1], along = column * dilation[2];
        taps.push_back({down, on, along, down * x.depthStep + on * x.rowStep + along * x.columnStep,
                        offset()});
      }
  cut();
}

void TileFilterGradient::cut() {
  auto chunks = static_cast<int64_t>(taps.size()) * chunksOfTap(), pairs = ceilDiv(dy.count(), 2);
  if (sumElements() <= mostShareElements)
    shares = std::clamp<int64_t>(pixels() / leastSharePixels, 1, threads * (threads > 4 ? 1 : 2));
  // What is cut is packed once, the other once for each part.
  bool cutsChunks = 2 * chunks >= dy.count();
  int64_t parts = std::min(ceilDiv(threads, shares), cutsChunks ? chunks : pairs);
  int64_t allSteps = ceilDiv(pixels(), tilePixels);
  for (int64_t share = 0; share < shares; ++share)
    for (int64_t part = 0; part < parts; ++part) {
      Task task{.share = share,
                .firstPixel = allSteps * share / shares * tilePixels,
                .pixels = 0,
                .firstBlock = 0,
                .blocks = dy.count(),
                .firstChunk = 0,
                .chunks = chunks};
      int64_t end = std::min(allSteps * (share + 1) / shares * tilePixels, pixels());
      task.pixels = end - task.firstPixel;
      if (cutsChunks) {
        task.firstChunk = chunks * part / parts;
        task.chunks = chunks * (part + 1) / parts - task.firstChunk;
      } else {
        task.firstBlock = 2 * (pairs * part / parts);
        task.blocks = std::min(2 * (pairs * (part + 1) / parts), dy.count()) - task.firstBlock;
      }
      mostSteps = std::max(mostSteps, stepsOf(task));
      mostBlocks = std::max(mostBlocks, task.blocks);
      keepsSums = keepsSums || shares > 1 || stepsOf(task) * tilePixels < task.pixels;
      tasks.push_back(task);
    }
}

int64_t TileFilterGradient::sumElements() const {
  return static_cast<int64_t>(taps.size()) * columnCount() * dy.count() * tileSums;
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
  int64_t ofPixel = 3 * sizeof(int64_t) + 3 * sizeof(int32_t);
  return static_cast<uint64_t>(tiles * tileBytes + mostSteps * tilePixels * ofPixel);
}

uint64_t TileFilterGradient::workspaceBytes() const {
  auto sums = static_cast<uint64_t>(keepsSums ? shares * sumElements() : 0) * sizeof(float);
  return sums + tasks.size() * packBytes();
}

uint64_t TileFilterGradient::flops() const {
  return 2 * static_cast<uint64_t>(sumElements() * pixels());
}

void TileFilterGradient::run(std::span<void *const> buffers) const {
  parallelFor(static_cast<int64_t>(tasks.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      runTask(tasks[static_cast<size_t>(i)], buffers);
  });
  if (shares > 1)
    parallelFor(sumElements() / tileSums, side, [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile)
        addShares(tile, buffers);
    });
}

// What follows runs where the processor has tiles alone.
#pragma clang attribute push(DLC_TILES, apply_to = function)

namespace {

alignas(rowBytes) constexpr uint16_t zeros[2 * side] = {};

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

/// Of `count` pixels from the first on, and of zeros up to whole steps.
void TileFilterGradient::place(const Task &task, int64_t first, int64_t count, int64_t steps,
                               const Places &places) const {
  int64_t pixel = task.firstPixel + first;
  int64_t column = pixel % dy.columns, row = pixel / dy.columns % dy.rows;
  int64_t slice = pixel / dy.columns / dy.rows, depth = slice % dy.depth, volume = slice / dy.depth;
  for (int64_t i = 0; i < steps * tilePixels; ++i) {
    if (i >= count) {
      places.ofResult[i] = absent;
      places.windows[i] = 0;
      places.column[i] = places.row[i] = places.depth[i] = static_cast<int32_t>(-mostExtent);
      continue;
    }
    int64_t down = depth * strideDepth - paddingDepth, on = row * strideRow - paddingRow,
            along = column * strideColumn - paddingColumn;
    places.ofResult[i] =
        volume * dy.volumeStep + depth * dy.depthStep + row * dy.rowStep + column * dy.columnStep;
    places.windows[i] =
        volume * x.volumeStep + down * x.depthStep + on * x.rowStep + along * x.columnStep;
    places.depth[i] = static_cast<int32_t>(down);
    places.row[i] = static_cast<int32_t>(on);
    places.column[i] = static_cast<int32_t>(along);
    if (++column < dy.columns)
      continue;
    column = 0;
    if (++row < dy.rows)
      continue;
    row = 0;
    if (++depth < dy.depth)
      continue;
    depth = 0;
    ++volume;
  }
}

void TileFilterGradient::placeTap(const Tap &tap, int64_t steps, const Places &places) const {
  auto isInside = [](int32_t first, int64_t tap, int64_t extent) {
    return static_cast<uint32_t>(first + static_cast<int32_t>(tap)) < static_cast<uint32_t>(extent);
  };
  for (int64_t i = 0; i < steps * tilePixels; ++i) {
    bool isPixel = isInside(places.depth[i], tap.depth, x.depth) &&
                   isInside(places.row[i], tap.row, x.rows) &&
                   (lineElements > 0 || isInside(places.column[i], tap.column, x.columns));
    places.ofSource[i] = isPixel ? places.windows[i] + tap.step : absent;
  }
}

/// The pixels of a step. Of a line those elements that the image has, which is cut off at its
/// columns.
void TileFilterGradient::packColumn(const uint16_t *source, const Column &column,
                                    const Places &places, int64_t step, std::byte *to) const {
  const int64_t *offsets = places.ofSource + step * tilePixels;
  if (lineElements == 0)
    return packPairs(source + column.element, offsets, to);
  const int32_t *firsts = places.column + step * tilePixels;
  auto load = [&](int64_t i) {
    int64_t first = firsts[i] * x.channels + column.element, end = x.columns * x.channels - first;
    __mmask16 mask = lowest(std::min(end, column.elements)) & ~lowest(-first);
    bool isPixel = offsets[i] != absent && mask != 0;
    const uint16_t *from = source + (isPixel ? offsets[i] + column.element : 0);
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(isPixel ? mask : __mmask16{0}, from));
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
  auto *numbers = reinterpret_cast<int64_t *>(memory.source + mostSteps * 2 * tileBytes);
  int64_t most = mostSteps * tilePixels;
  auto *coordinates = reinterpret_cast<int32_t *>(numbers + 3 * most);
  memory.places = {numbers,     numbers + most,     numbers + 2 * most,
                   coordinates, coordinates + most, coordinates + 2 * most};
  memory.sums =
      reinterpret_cast<float *>(packs + tasks.size() * packBytes()) + task.share * sumElements();
  return memory;
}

/// Two tiles of blocks for each step, one pair of blocks after the other.
void TileFilterGradient::packBlocks(const Task &task, const uint16_t *result, int64_t steps,
                                    const Memory &memory) const {
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t i = 0; i < task.blocks; ++i)
      packChannels(result + dy.blocks[static_cast<size_t>(task.firstBlock + i)],
                   memory.places.ofResult + step * tilePixels,
                   memory.result + ((i / 2 * steps + step) * 2 + i % 2) * tileBytes);
}

/// Sums of a chunk over the pixels that are packed.
void TileFilterGradient::sumChunk(const Task &task, const Chunk &chunk, const Pass &pass,
                                  const Memory &memory, float *gradient) const {
  alignas(rowBytes) float own[4 * tileSums];
  SumSteps sumSteps{.row = tileSums, .column = (keepsSums ? dy.count() : 2) * tileSums};
  for (int64_t i = 0; i < task.blocks; i += 2) {
    int64_t row = task.firstBlock + i, rows = std::min<int64_t>(2, task.blocks - i);
    int64_t tile = (chunk.tap * columnCount() + chunk.column) * dy.count() + row;
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
    Pass pass{ceilDiv(count, tilePixels), first == 0, shares == 1 && first + count == task.pixels};
    place(task, first, count, pass.steps, memory.places);
    packBlocks(task, static_cast<const uint16_t *>(buffers[1]), pass.steps, memory);
    for (int64_t number = task.firstChunk; number < task.firstChunk + task.chunks; ++number) {
      Chunk chunk{number / chunksOfTap(), number % chunksOfTap() * 2, 2};
      chunk.columns = std::min<int64_t>(2, columnCount() - chunk.column);
      if (chunk.column == 0 || number == task.firstChunk)
        placeTap(taps[static_cast<size_t>(chunk.tap)], pass.steps, memory.places);
      for (int64_t i = 0; i < pass.steps * chunk.columns; ++i) {
        int64_t step = i / chunk.columns, column = i % chunk.columns;
        packColumn(source, columns[static_cast<size_t>(chunk.column + column)], memory.places, step,
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
  int64_t column = tile / dy.count();
  writeTile(all, column / columnCount(), column % columnCount(), tile % dy.count(),
            static_cast<float *>(buffers[2]));
}

#pragma clang attribute pop

} // namespace dlc::rt
