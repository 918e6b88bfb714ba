#include "runtime/cpu/kernels/TileConvolution.h"

#include "runtime/core/CeilDiv.h"
#include "runtime/core/ParallelFor.h"

#include <algorithm>

namespace dlc::rt {
namespace {

using namespace tiles;

/// The rows of a task, as they are gathered, stay in the second-level cache.
constexpr int64_t gatheredElements = 256 * 1024, leastTaskPixels = 64, mostTaskPixels = 256;
constexpr int64_t tasksOfThread = 4;
constexpr int64_t blockPair = 2 * side;
constexpr int64_t mostChannelsInPlace = 512;

size_t resultOf(const KernelRequest &request) { return request.operands.size() - 1; }

} // namespace

std::optional<std::vector<Layout>> TileConvolution::layouts(const KernelRequest &request) {
  bool isData = request.op == KernelOp::ConvGradData;
  if ((request.op != KernelOp::Conv && !isData) || request.groups != 1 || !hasTiles() ||
      !isBounded(request))
    return std::nullopt;
  const std::vector<OperandType> &operands = request.operands;
  const OperandType &source = operands[0], &weight = operands[1],
                    &result = operands[resultOf(request)];
  size_t summed = isData ? 0 : 1, kept = isData ? 1 : 0; // dimensions of the weight
  auto isFit = [](const OperandType &operand) { return operand.dtype == DType::BF16; };
  if (!isFit(source) || !isFit(weight) || !isFit(result) || source.shape[0] != result.shape[0] ||
      source.shape[1] != weight.shape[summed] || result.shape[1] != weight.shape[kept] ||
      weight.shape[0] % side != 0 || weight.shape[1] % side != 0 ||
      (request.bias &&
       (operands[2].dtype != DType::F32 || operands[2].shape[0] != result.shape[1])))
    return std::nullopt;
  size_t rank = weight.shape.size();
  Layout ofImages = layoutIn(LayoutFamily::ChannelsLast, rank, side);
  // Blocks of the result's channels, the window, blocks of the source's.
  Layout ofWeight = Layout::rowMajor(rank);
  std::rotate(ofWeight.order.begin() + 1, ofWeight.order.begin() + 2, ofWeight.order.end());
  if (isData)
    std::swap(ofWeight.order.front(), ofWeight.order.back());
  ofWeight.blocks = {{static_cast<uint8_t>(summed), side},
                     {static_cast<uint8_t>(kept), side},
                     {static_cast<uint8_t>(summed), 2}};
  std::vector<Layout> layouts{ofImages, ofWeight};
  if (request.bias)
    layouts.push_back(Layout::rowMajor(1));
  layouts.push_back(ofImages);
  return ifWanted(request, std::move(layouts));
}

std::unique_ptr<const TileConvolution> TileConvolution::of(const KernelRequest &request) {
  if (!hasLayouts(request) || !layouts(request))
    return nullptr;
  return std::unique_ptr<const TileConvolution>(new TileConvolution(request));
}

TileConvolution::TileConvolution(const KernelRequest &request)
    : source(request.operands[0]), result(request.operands[resultOf(request)]),
      hasBias(request.bias), hasRelu(request.relu), threads(request.threads) {
  addPhases(request, request.operands[1].shape);
  cut();
}

/// Pixels of the result that are equally far from a step, along each dimension, and the elements of
/// the window that are as far from it. A convolution has one phase.
void TileConvolution::addPhases(const KernelRequest &request, const std::vector<int64_t> &window) {
  Triple extents = lifted(std::span(window).subspan(2), 1), stride = lifted(request.strides, 1),
         padding = lifted(request.paddingLow, 0), dilation = lifted(request.dilations, 1);
  bool isData = request.op == KernelOp::ConvGradData;
  taps = extents[0] * extents[1] * extents[2];
  Triple one{1, 1, 1}, resultStep = isData ? stride : one, sourceStep = isData ? one : stride;
  Triple steps;
  for (size_t d = 0; d < 3; ++d)
    steps[d] = std::min(resultStep[d], result.extents[d]);
  forEachPlace(steps, [&](const Triple &first) {
    Phase phase{{{}, first, resultStep, sourceStep}, {}};
    for (size_t d = 0; d < 3; ++d)
      phase.grid.counts[d] = ceilDiv(result.extents[d] - first[d], resultStep[d]);
    int64_t number = 0;
    forEachPlace(extents, [&](const Triple &at) {
      Tap tap{number++, {}};
      bool isOfPhase = true;
      for (size_t d = 0; d < 3; ++d) {
        int64_t reach = at[d] * dilation[d] - padding[d];
        isOfPhase = isOfPhase && (first[d] - reach) % resultStep[d] == 0;
        tap.from[d] = isData ? (first[d] - reach) / resultStep[d] : reach;
      }
      if (isOfPhase)
        phase.taps.push_back(tap);
    });
    phases.push_back(std::move(phase));
  });
}

void TileConvolution::cut() {
  int64_t blocks = result.channels / side, pairs = ceilDiv(blocks, 2), pieces = 0;
  auto pixelsOf = [&](const Phase &phase) {
    const Triple &counts = phase.grid.counts;
    return result.volumes * counts[0] * counts[1] * counts[2];
  };
  auto atOnceOf = [&](const Phase &phase) {
    int64_t row = std::max<int64_t>(static_cast<int64_t>(phase.taps.size()), 1) * source.channels;
    return std::clamp(gatheredElements / row / blockPair * blockPair, leastTaskPixels,
                      mostTaskPixels);
  };
  for (const Phase &phase : phases)
    pieces += ceilDiv(pixelsOf(phase), atOnceOf(phase));
  int64_t parts = std::clamp(ceilDiv(tasksOfThread * threads, pieces), int64_t{1}, pairs);
  for (const Phase &phase : phases) {
    int64_t count = ceilDiv(pixelsOf(phase), atOnceOf(phase));
    for (int64_t i = 0; i < count; ++i)
      for (int64_t part = 0; part < parts; ++part) {
        auto firstOf = [&](int64_t piece) {
          return std::min(ceilDiv(pixelsOf(phase), side) * piece / count * side, pixelsOf(phase));
        };
        int64_t firstBlock = 2 * (pairs * part / parts);
        tasks.push_back({&phase, firstOf(i), firstOf(i + 1) - firstOf(i), firstBlock,
                         std::min(2 * (pairs * (part + 1) / parts), blocks) - firstBlock});
        mostPixels = std::max(mostPixels, ceilDiv(tasks.back().pixels, blockPair) * blockPair);
      }
    mostSteps = std::max(mostSteps, static_cast<int64_t>(phase.taps.size()) * stepsOfTap());
  }
}

int64_t TileConvolution::stepsOfTap() const { return ceilDiv(source.channels, rowElements); }

uint64_t TileConvolution::ownBytes() const {
  return static_cast<uint64_t>(mostPixels * (mostSteps * rowBytes + placeBytes));
}

uint64_t TileConvolution::workspaceBytes() const {
  return static_cast<uint64_t>(threads) * ownBytes();
}

uint64_t TileConvolution::flops() const {
  bool isDense = phases.front().grid.resultStep == Triple{1, 1, 1};
  int64_t pixels = (isDense ? result : source).pixels();
  return static_cast<uint64_t>(2 * pixels * taps * source.channels * result.channels);
}

void TileConvolution::run(std::span<void *const> buffers) const {
  onThreads(static_cast<int64_t>(tasks.size()), [&](int64_t task, int64_t thread) {
    runTask(tasks[static_cast<size_t>(task)], buffers, thread);
  });
}

#pragma clang attribute push(DLC_TILES, apply_to = function)

namespace {

constexpr SumSteps productSteps{.row = 2 * tileSums, .column = tileSums};

/// Sums of one or two tiles of rows by one or two of columns. The rows of a tap follow those of the
/// one before; its weights begin at its number times `steps` tiles.
template <int rows, int columns, typename Tap>
void sumTaps(Factor gathered, Factor weight, int64_t steps, std::span<const Tap> taps,
             const float *bias, float *to) {
  if (bias) // in each row
    loadSums<rows, columns>(bias, {.row = 0, .column = side, .line = 0});
  else
    clearSums();
  for (const Tap &tap : taps) {
    Factor ofTap = weight;
    ofTap.first += tap.number * steps * weight.step;
    multiply<rows, columns>(gathered, ofTap, steps, [] {});
    gathered.first += steps * gathered.step;
  }
  storeSums<rows, columns>(to, productSteps);
}

/// Sums of a pixel, rounded to bf16.
void writePixel(const float *sums, bool isPair, bool hasRelu, uint16_t *to) {
  auto load = [&](const float *from) {
    __m512 value = _mm512_load_ps(from);
    return hasRelu ? _mm512_max_ps(_mm512_setzero_ps(), value) : value;
  };
  if (isPair)
    _mm512_storeu_si512(to, reinterpret_cast<__m512i>(
                                _mm512_cvtne2ps_pbh(load(sums + productSteps.column), load(sums))));
  else
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to),
                        reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(load(sums))));
}

} // namespace

/// True if tiles can load a task's rows where they lie: its windows are one element, they leave out
/// no pixel of the source, and the rows are not so long that they would contend for the same sets
/// of the cache.
bool TileConvolution::isInPlace(const Task &task) const {
  const Phase &phase = *task.phase;
  return phase.taps.size() == 1 && phase.taps.front().from == Triple{} &&
         phase.grid.counts == source.extents && phase.grid.sourceStep == Triple{1, 1, 1} &&
         source.channels % rowElements == 0 && source.channels <= mostChannelsInPlace &&
         task.pixels % side == 0;
}

/// Two tiles of rows for each step, one after the other. Rows beyond the pixels are zeros.
void TileConvolution::gather(const Task &task, const uint16_t *images, const Places &places,
                             std::byte *rows) const {
  const std::vector<Tap> &found = task.phase->taps;
  int64_t steps = stepsOfTap(), allSteps = steps * static_cast<int64_t>(found.size());
  int64_t rest = source.channels - (steps - 1) * rowElements;
  auto last = static_cast<__mmask32>((uint64_t{1} << rest) - 1);
  for (int64_t t = 0; t < static_cast<int64_t>(found.size()); ++t) {
    const Tap &tap = found[static_cast<size_t>(t)];
    int64_t shift = source.offset(tap.from);
    for (int64_t i = 0; i < ceilDiv(task.pixels, side) * side; ++i) {
      bool isPixel = i < task.pixels && isWithin(places.depth[i], tap.from[0], source.extents[0]) &&
                     isWithin(places.row[i], tap.from[1], source.extents[1]) &&
                     isWithin(places.column[i], tap.from[2], source.extents[2]);
      const uint16_t *from = images + (isPixel ? places.ofSource[i] + shift : 0);
      __mmask32 all = isPixel ? ~__mmask32{0} : 0;
      std::byte *to =
          rows + (i / blockPair * allSteps + t * steps) * 2 * tileBytes + i % blockPair * rowBytes;
      for (int64_t step = 0; step + 1 < steps; ++step, from += rowElements, to += 2 * tileBytes)
        _mm512_store_si512(to, _mm512_maskz_loadu_epi16(all, from));
      _mm512_store_si512(to, _mm512_maskz_loadu_epi16(all & last, from));
    }
  }
}

void TileConvolution::runTask(const Task &task, std::span<void *const> buffers,
                              int64_t thread) const {
  size_t resultOperand = hasBias ? 3 : 2;
  const auto *weight = static_cast<const std::byte *>(buffers[1]);
  const auto *bias = hasBias ? static_cast<const float *>(buffers[2]) : nullptr;
  auto *to = static_cast<uint16_t *>(buffers[resultOperand]);
  std::byte *own = static_cast<std::byte *>(buffers[resultOperand + 1]) +
                   static_cast<uint64_t>(thread) * ownBytes();
  Places places = placesIn(own + mostPixels * mostSteps * rowBytes, mostPixels);
  place(task.phase->grid, result, source, task.firstPixel, task.pixels, places);
  const std::vector<Tap> &found = task.phase->taps;
  int64_t steps = stepsOfTap();
  Factor rows{own, 2 * tileBytes, tileBytes};
  int64_t pixelBytes = steps * static_cast<int64_t>(found.size()) * rowBytes;
  if (isInPlace(task)) {
    rows.first = static_cast<const std::byte *>(buffers[0]) +
                 task.firstPixel * source.channels * static_cast<int64_t>(sizeof(uint16_t));
    rows = {rows.first, rowBytes, side * pixelBytes, pixelBytes};
  } else {
    gather(task, static_cast<const uint16_t *>(buffers[0]), places, own);
  }

  alignas(rowBytes) float products[4 * tileSums];
  constexpr Config config;
  _tile_loadconfig(&config);
  Factor ofBlock{weight, tileBytes, taps * steps * tileBytes};
  for (int64_t block = task.firstBlock; block < task.firstBlock + task.blocks; block += 2) {
    bool isPair = block + 1 < task.firstBlock + task.blocks;
    ofBlock.first = weight + block * ofBlock.apart;
    const float *ofBias = bias ? bias + block * side : nullptr;
    Factor ofPixels = rows;
    for (int64_t first = 0; first < task.pixels; first += blockPair) {
      bool isLong = task.pixels - first > side;
      auto sum = isPair ? (isLong ? sumTaps<2, 2, Tap> : sumTaps<1, 2, Tap>)
                        : (isLong ? sumTaps<2, 1, Tap> : sumTaps<1, 1, Tap>);
      ofPixels.first = rows.first + first * pixelBytes;
      sum(ofPixels, ofBlock, steps, found, ofBias, products);
      for (int64_t i = 0; i < std::min(blockPair, task.pixels - first); ++i)
        writePixel(products + i / side * productSteps.row + i % side * side, isPair, hasRelu,
                   to + places.ofResult[first + i] + block * side);
    }
  }
  _tile_release();
}

#pragma clang attribute pop

} // namespace dlc::rt
