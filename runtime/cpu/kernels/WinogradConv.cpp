#include "runtime/cpu/kernels/WinogradConv.h"

#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/kernels/TileTransforms.h"
#include "runtime/cpu/kernels/WinogradRequest.h"

#include <algorithm>
#include <numeric>

#define AVX512_LAMBDA __attribute__((target("avx512f,avx512bw"), always_inline))

namespace dlc::rt {
namespace {

using namespace tiles;
using namespace winograd;

/// Tiles whose products are computed together: rows of some register products, whose results stay
/// in the second-level cache.
constexpr int64_t groupTiles = 24;
constexpr auto pointCount = static_cast<int64_t>(points);
constexpr auto tileSide = static_cast<int64_t>(side);
/// Of the matrices of a strip that the team shares, unless the weight's are larger: then it would
/// be read too often. Of a bundle's weights, and most of the sums that each share has.
constexpr int64_t sharedElements = 1 << 20;
/// Of the matrices of a filter gradient's strip that is a thread's own.
constexpr int64_t ownElements = 1 << 19;
/// Tiles that are a task where the team shares a strip.
constexpr int64_t taskTiles = 8;
constexpr int64_t window = 3 * 3; // of a plane

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Vectors of activations and weights, in f32 or bf16.

DLC_AVX512 __m512 load(const float *from) { return _mm512_loadu_ps(from); }
DLC_AVX512 __m512 load(const uint16_t *from) {
  __m256i narrow = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16));
}

DLC_AVX512 void store(float *to, __m512 value) { _mm512_storeu_ps(to, value); }
/// To the nearest, of two to the even one. What is no number here has no bits that are cut off.
DLC_AVX512 void store(uint16_t *to, __m512 value) {
  __m512i bits = _mm512_castps_si512(value), high = _mm512_srli_epi32(bits, 16);
  __m512i isOdd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  bits = _mm512_add_epi32(bits, _mm512_add_epi32(isOdd, _mm512_set1_epi32(0x7FFF)));
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(to),
                      _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
}

} // namespace

//===- Planning -------------------------------------------------------------------------------===//

std::optional<std::vector<Layout>> WinogradConv::layouts(const KernelRequest &request,
                                                         LayoutFamily family) {
  if (family == LayoutFamily::Plain || !isComputed(request))
    return std::nullopt;
  std::vector<Layout> layouts;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    size_t rank = request.operands[i].shape.size();
    layouts.push_back(i == *weightOperand(request.op) ? weightLayout(rank)
                                                      : layoutIn(family, rank, block));
    const std::optional<Layout> &wanted = request.operands[i].layout;
    if (wanted && *wanted != layouts.back())
      return std::nullopt;
  }
  return layouts;
}

WinogradConv::Images WinogradConv::Images::of(const OperandType &operand) {
  const std::vector<int64_t> &shape = operand.shape;
  size_t rank = shape.size();
  auto step = [&](size_t dim, int64_t elements) {
    std::vector<int64_t> index(rank, 0);
    index[dim] = elements;
    return operand.layout->offsetOf(shape, index);
  };
  Images images{.dtype = operand.dtype,
                .volumes = shape[0],
                .depth = rank == 5 ? shape[2] : 1,
                .rows = shape[rank - 2],
                .columns = shape[rank - 1],
                .blocks = shape[1] / block,
                .volumeStep = step(0, 1),
                .depthStep = rank == 5 ? step(2, 1) : 0,
                .rowStep = step(rank - 2, 1),
                .columnStep = step(rank - 1, 1),
                .blockStep = step(1, block)};
  return images;
}

std::optional<WinogradConv> WinogradConv::of(const KernelRequest &request) {
  if (!std::ranges::all_of(request.operands,
                           [](const OperandType &type) { return type.layout.has_value(); }) ||
      (!layouts(request, LayoutFamily::Blocked) && !layouts(request, LayoutFamily::ChannelsLast)))
    return std::nullopt;
  WinogradConv conv;
  conv.op = request.op;
  conv.hasBias = request.bias;
  conv.hasRelu = request.relu;
  conv.source = Images::of(request.operands[sourceOperand()]);
  conv.result = Images::of(request.operands[resultOperand(request)]);
  const OperandType &weight = request.operands[*weightOperand(request.op)];
  conv.isWeightNarrow = weight.dtype == DType::BF16;
  const std::vector<int64_t> &extents = weight.shape;
  size_t rank = extents.size();
  auto padding = [&](size_t dim) {
    int64_t low = request.paddingLow[dim - 2];
    return request.op == KernelOp::ConvGradData ? extents[dim] - 1 - low : low;
  };
  conv.paddingRow = padding(rank - 2);
  conv.paddingColumn = padding(rank - 1);
  if (rank == 5) {
    conv.windowDepth = extents[2];
    conv.paddingDepth = padding(2);
  }
  conv.plan(request.threads);
  return conv;
}

void WinogradConv::plan(int64_t threads) {
  bool isFlat = windowDepth == 1 && paddingDepth == 0 && source.depth == 1;
  stacked = isFlat ? source.volumes : 1;
  imageTileRows = ceilDiv(result.rows, tileSide);
  tileRows = imageTileRows * stacked;
  tileColumns = ceilDiv(result.columns, tileSide);
  int64_t count = ceilDiv(result.blocks, mostVectors);
  for (int64_t i = 0; i < count; ++i) {
    int64_t first = result.blocks * i / count;
    panels.push_back({first, result.blocks * (i + 1) / count - first});
  }
  if (!planOwnStrips(threads))
    planSharedStrips();
  planBundles(threads);
  planParts();
}

/// False where that would keep threads waiting or take too much memory.
bool WinogradConv::planOwnStrips(int64_t threads) {
  int64_t volumes = result.volumes / stacked, stripSlices = result.depth;
  if (isOfFilter()) {
    if (windowDepth * pointCount * source.channels() * result.channels() > sharedElements)
      return false;
    shares = threads * (threads > 4 ? 1 : 2);
    int64_t ofTile = pointCount * (windowDepth * source.channels() + result.channels());
    int64_t tiles = std::max(ownElements / ofTile / groupTiles, int64_t{1}) * groupTiles;
    int64_t number = ceilDiv(tilesOfSlice(), tiles);
    int64_t even = std::lcm(volumes, shares); // of all strips: each share has as many
    number = ceilDiv(number * volumes, even) * even / volumes;
    if (number * groupTiles / 2 > tilesOfSlice())
      return false;
    places = threads;
    cutStrips(number, stripSlices);
    return true;
  }
  if (windowDepth * pointCount * source.channels() * result.channels() > 4 * sharedElements)
    return false; // each thread would read it all from memory
  int64_t number = ceilDiv(tilesOfSlice(), groupTiles);
  while (volumes * number * ceilDiv(result.depth, stripSlices) < 8 * threads &&
         stripSlices > 2 * windowDepth)
    stripSlices = ceilDiv(stripSlices, 2);
  if (volumes * number * ceilDiv(result.depth, stripSlices) < 8 * threads)
    return false;
  places = threads;
  cutStrips(number, stripSlices);
  return true;
}

void WinogradConv::planSharedStrips() {
  shares = 1;
  int64_t ofTile = pointCount * (source.channels() + (isOfFilter() ? result.channels() : 0));
  int64_t budget =
      std::max(sharedElements, windowDepth * pointCount * source.channels() * result.channels());
  int64_t tiles = std::clamp<int64_t>(budget / ofTile / windowDepth, 1, tilesOfSlice());
  stepSlices = std::clamp<int64_t>(budget / (ofTile * tiles) - windowDepth + 1, 1, result.depth);
  stepSlices = ceilDiv(result.depth, ceilDiv(result.depth, stepSlices));
  cutStrips(ceilDiv(tilesOfSlice(), tiles), result.depth);
}

void WinogradConv::cutStrips(int64_t stripsOfSlice, int64_t stripSlices) {
  int64_t steps = 0;
  for (int64_t volume = 0; volume < result.volumes; volume += stacked)
    for (int64_t slice = 0; slice < result.depth; slice += stripSlices)
      for (int64_t i = 0; i < stripsOfSlice; ++i) {
        int64_t first = tilesOfSlice() * i / stripsOfSlice;
        int64_t tiles = tilesOfSlice() * (i + 1) / stripsOfSlice - first;
        int64_t slices = std::min(stripSlices, result.depth - slice);
        strips.push_back({volume, first, tiles, slice, slices, steps});
        stripTiles = std::max(stripTiles, tiles);
        steps += ceilDiv(slices, stepSlices);
      }
}

/// Bundles of so many panels that a team has enough to share. More than one strip would transform
/// the weights of each bundle again.
void WinogradConv::planBundles(int64_t threads) {
  auto count = static_cast<int64_t>(panels.size()), atOnce = count;
  if (places == 0 && strips.size() == 1 && stepSlices == result.depth) {
    int64_t ofPanel = windowDepth * pointCount * source.channels() * mostVectors * block;
    int64_t tasks = isOfFilter() ? windowDepth * pointCount : stepSlices * groupsOf(strips[0]);
    atOnce = std::max(ceilDiv(sharedElements, ofPanel), ceilDiv(4 * threads, tasks));
  }
  int64_t number = ceilDiv(count, std::min(atOnce, count));
  for (int64_t i = 0; i < number; ++i) {
    int64_t first = count * i / number, last = count * (i + 1) / number - 1;
    int64_t firstBlock = panels[static_cast<size_t>(first)].firstBlock;
    const Panel &end = panels[static_cast<size_t>(last)];
    bundles.push_back(
        {first, last + 1 - first, firstBlock, end.firstBlock + end.vectors - firstBlock});
    bundleBlocks = std::max(bundleBlocks, bundles.back().blocks);
  }
}

int64_t WinogradConv::groupsOf(const Strip &strip) const {
  return ceilDiv(strip.tiles, groupTiles);
}

int64_t WinogradConv::sliceElements(const Images &images) const {
  return ceilDiv(stripTiles, groupTiles) * groupTiles * pointCount * images.channels();
}

/// Of a bundle's weights, for one plane of the window.
int64_t WinogradConv::planeElements() const {
  return pointCount * source.channels() * bundleBlocks * block;
}

int64_t WinogradConv::stripElements() const {
  return slots() * sliceElements(source) + (isOfFilter() ? stepSlices * sliceElements(result) : 0);
}

uint64_t WinogradConv::workspaceBytes() const {
  int64_t elements =
      shares * windowDepth * planeElements() + std::max<int64_t>(places, 1) * stripElements();
  return static_cast<uint64_t>(elements) * sizeof(float);
}

/// A transform of a tile of a channel takes about as long as 300 products, and that of a window
/// 200.
uint64_t WinogradConv::flops() const {
  int64_t tiles = result.volumes / stacked * result.depth * tilesOfSlice();
  int64_t pairs = windowDepth * source.channels() * result.channels();
  int64_t channels = source.channels() + result.channels();
  return static_cast<uint64_t>(2 * (tiles * (pointCount * pairs + 300 * channels) + 200 * pairs));
}

WinogradConv::Matrices WinogradConv::matricesOf(float *workspace, int64_t share,
                                                int64_t place) const {
  Matrices matrices;
  matrices.weight = workspace + share * windowDepth * planeElements();
  matrices.source = workspace + shares * windowDepth * planeElements() + place * stripElements();
  matrices.result = matrices.source + slots() * sliceElements(source);
  return matrices;
}

template <typename Body> void WinogradConv::forSteps(const Strip &strip, Body &&body) const {
  int64_t end = strip.firstSlice + strip.slices, number = strip.firstStep, done = 0;
  for (int64_t slice = strip.firstSlice; slice < end; slice += stepSlices) {
    int64_t slices = std::min(stepSlices, end - slice);
    int64_t first = std::max(done, slice - paddingDepth);
    done = std::clamp(slice + slices - paddingDepth + windowDepth - 1, first,
                      std::max(first, source.depth));
    body(Step{slice, slices, first, done - first, number++});
  }
}

/// Planes of the window that are inside of the volume at this slice of the result.
WinogradConv::Parts WinogradConv::partsOfSlice(int64_t slice) const {
  Parts found;
  for (int64_t plane = 0; plane < windowDepth; ++plane)
    if (int64_t from = slice - paddingDepth + plane; from >= 0 && from < source.depth)
      found.push_back(
          {slotOf(from) * sliceElements(source), plane * planeElements(), source.channels()});
  return found;
}

/// Groups of a strip's tiles whose windows have this plane inside of the volume.
WinogradConv::Parts WinogradConv::partsOfPlane(const Strip &strip, const Step &step,
                                               int64_t plane) const {
  Parts found;
  for (int64_t i = 0; i < step.slices; ++i) {
    int64_t from = step.firstSlice + i - paddingDepth + plane;
    if (from < 0 || from >= source.depth)
      continue;
    for (int64_t tile = 0; tile < strip.tiles; tile += groupTiles)
      found.push_back({slotOf(from) * sliceElements(source) + tile * pointCount * source.channels(),
                       i * sliceElements(result) + tile * pointCount * result.channels(),
                       std::min(groupTiles, strip.tiles - tile)});
  }
  return found;
}

void WinogradConv::planParts() {
  if (!isOfFilter()) {
    for (int64_t slice = 0; slice < result.depth; ++slice)
      parts.push_back(partsOfSlice(slice));
    return;
  }
  for (const Strip &strip : strips)
    forSteps(strip, [&](const Step &step) {
      for (int64_t plane = 0; plane < windowDepth; ++plane)
        parts.push_back(partsOfPlane(strip, step, plane));
    });
}

//===- Images to matrices ---------------------------------------------------------------------===//

/// Tiles of a slice. At each point a group's matrix has a row per tile.
template <typename Transform, typename Element>
__attribute__((target("avx512f,avx512bw"))) void
WinogradConv::transformTiles(const Images &images, const Element *from, const Strip &strip,
                             int64_t slice, int64_t begin, int64_t end, float *to) const {
  constexpr bool isSource = std::is_same_v<Transform, Source>;
  constexpr auto extent = static_cast<int64_t>(Transform::from);
  int64_t channels = images.channels();
  for (int64_t tile = begin; tile < end; ++tile) {
    int64_t place = strip.firstTile + tile;
    int64_t stackRow = place / tileColumns, column = place % tileColumns;
    const Element *image = from + (strip.volume + stackRow / imageTileRows) * images.volumeStep +
                           slice * images.depthStep;
    int64_t firstRow = stackRow % imageTileRows * tileSide - (isSource ? paddingRow : 0);
    int64_t firstColumn = column * tileSide - (isSource ? paddingColumn : 0);
    float *ofTile =
        to + tile / groupTiles * groupTiles * pointCount * channels + tile % groupTiles * channels;
    const Element *corner = image + firstRow * images.rowStep + firstColumn * images.columnStep;
    bool isInside = firstRow >= 0 && firstColumn >= 0 && firstRow + extent <= images.rows &&
                    firstColumn + extent <= images.columns;
    for (int64_t c = 0; c < images.blocks; ++c) {
      auto put = [&](size_t i, size_t j, __m512 value) AVX512_LAMBDA {
        _mm512_store_ps(ofTile + (i * reach + j) * groupTiles * channels + c * block, value);
      };
      const Element *ofBlock = corner + c * images.blockStep;
      auto offset = [&](size_t i, size_t j) {
        return static_cast<int64_t>(i) * images.rowStep +
               static_cast<int64_t>(j) * images.columnStep;
      };
      if (isInside) {
        transformTile<Transform>(
            [&](size_t i, size_t j) AVX512_LAMBDA { return load(ofBlock + offset(i, j)); }, put);
        continue;
      }
      transformTile<Transform>(
          [&](size_t i, size_t j) AVX512_LAMBDA {
            int64_t y = firstRow + static_cast<int64_t>(i),
                    x = firstColumn + static_cast<int64_t>(j);
            bool exists = y >= 0 && y < images.rows && x >= 0 && x < images.columns;
            return exists ? load(ofBlock + offset(i, j)) : _mm512_setzero_ps();
          },
          put);
    }
  }
}

/// The i-th slice that is new to a step: of the source, and then of a filter gradient's other
/// operand.
void WinogradConv::transformSlice(const Strip &strip, const Step &step, int64_t i, int64_t begin,
                                  int64_t end, const Operands &operands,
                                  const Matrices &matrices) const {
  auto transform = [&]<typename Transform>(const Images &images, const void *from, int64_t slice,
                                           float *to) {
    if (images.dtype == DType::BF16)
      transformTiles<Transform>(images, static_cast<const uint16_t *>(from), strip, slice, begin,
                                end, to);
    else
      transformTiles<Transform>(images, static_cast<const float *>(from), strip, slice, begin, end,
                                to);
  };
  if (i < step.newSlices)
    transform.operator()<Source>(source, operands.source, step.firstNewSlice + i,
                                 matrices.source +
                                     slotOf(step.firstNewSlice + i) * sliceElements(source));
  else
    transform.operator()<ResultGradient>(
        result, operands.result, step.firstSlice + i - step.newSlices,
        matrices.result + (i - step.newSlices) * sliceElements(result));
}

//===- The weight -----------------------------------------------------------------------------===//

/// One block of channels by channels of one plane of the window. A panel's matrix of a plane and
/// point has a row per channel of the source.
__attribute__((target("avx512f,avx512bw"))) void WinogradConv::transformWeight(const Bundle &bundle,
                                                                               int64_t task,
                                                                               const void *weight,
                                                                               float *to) const {
  bool isGradient = op == KernelOp::ConvGradData;
  int64_t plane = task % windowDepth;
  int64_t s = task / windowDepth % source.blocks;
  int64_t r = bundle.firstBlock + task / windowDepth / source.blocks;
  int64_t blockPlace = isGradient ? s * result.blocks + r : r * source.blocks + s;
  int64_t ofPlane = isGradient ? windowDepth - 1 - plane : plane;
  int64_t first = (blockPlace * windowDepth + ofPlane) * window * block * block;
  alignas(64) float taps[window * block * block];
  for (int64_t i = 0; i < window * block * block; i += block)
    _mm512_store_ps(taps + i, isWeightNarrow
                                  ? load(static_cast<const uint16_t *>(weight) + first + i)
                                  : load(static_cast<const float *>(weight) + first + i));
  auto panel =
      std::ranges::find_if(panels, [&](const Panel &it) { return r < it.firstBlock + it.vectors; });
  int64_t lanes = panel->vectors * block;
  float *ofPanel = to + plane * planeElements() +
                   pointCount * source.channels() * (panel->firstBlock - bundle.firstBlock) * block;
  __m512i everyRow =
      _mm512_mullo_epi32(_mm512_set1_epi32(block),
                         _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  for (int64_t i = 0; i < block; ++i) {
    float *ofRow = ofPanel + (s * block + i) * lanes + (r - panel->firstBlock) * block;
    auto put = [&](size_t y, size_t x, __m512 value) AVX512_LAMBDA {
      _mm512_store_ps(ofRow + (y * reach + x) * source.channels() * lanes, value);
    };
    auto tap = [&](size_t y, size_t x) { return taps + (y * 3 + x) * block * block; };
    // Lanes are the result's channels; those of a data gradient are rows of the block.
    if (isGradient)
      transformTile<Window>(
          [&](size_t y, size_t x) AVX512_LAMBDA {
            return _mm512_i32gather_ps(everyRow, tap(2 - y, 2 - x) + i, sizeof(float));
          },
          put);
    else
      transformTile<Window>([&](size_t y, size_t x)
                                AVX512_LAMBDA { return _mm512_load_ps(tap(y, x) + i * block); },
                            put);
  }
}

void WinogradConv::transformWeights(const Bundle &bundle, const Operands &operands,
                                    float *to) const {
  parallelFor(windowDepth * source.blocks * bundle.blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task)
      transformWeight(bundle, task, operands.weight, to);
  });
}

//===- Products to images ---------------------------------------------------------------------===//

template <typename Element>
__attribute__((target("avx512f,avx512bw"))) void
WinogradConv::writeGroup(const Strip &strip, const Panel &panel, int64_t slice, int64_t group,
                         const float *products, const float *bias, Element *images) const {
  int64_t lanes = panel.vectors * block;
  int64_t tiles = std::min(groupTiles, strip.tiles - group * groupTiles);
  for (int64_t v = 0; v < panel.vectors; ++v) {
    int64_t ofBlock = panel.firstBlock + v;
    __m512 added = hasBias ? _mm512_loadu_ps(bias + ofBlock * block) : _mm512_setzero_ps();
    __m512 least = _mm512_set1_ps(hasRelu ? 0.0F : -__builtin_inff());
    for (int64_t tile = 0; tile < tiles; ++tile) {
      int64_t place = strip.firstTile + group * groupTiles + tile;
      int64_t stackRow = place / tileColumns;
      int64_t volume = strip.volume + stackRow / imageTileRows;
      int64_t row = stackRow % imageTileRows * tileSide;
      int64_t column = place % tileColumns * tileSide;
      int64_t rows = std::min(tileSide, result.rows - row);
      int64_t columns = std::min(tileSide, result.columns - column);
      Element *to = images + volume * result.volumeStep + slice * result.depthStep +
                    row * result.rowStep + column * result.columnStep + ofBlock * result.blockStep;
      const float *from = products + tile * lanes + v * block;
      transformTile<Result>(
          [&](size_t i, size_t j)
              AVX512_LAMBDA { return _mm512_load_ps(from + (i * reach + j) * groupTiles * lanes); },
          [&](size_t i, size_t j, __m512 value) AVX512_LAMBDA {
            if (static_cast<int64_t>(i) < rows && static_cast<int64_t>(j) < columns)
              store(to + static_cast<int64_t>(i) * result.rowStep +
                        static_cast<int64_t>(j) * result.columnStep,
                    _mm512_max_ps(value + added, least));
          });
    }
  }
}

void WinogradConv::multiplyGroup(const Strip &strip, const Bundle &bundle, const Panel &panel,
                                 int64_t slice, int64_t group, const Operands &operands,
                                 const Matrices &matrices) const {
  alignas(64) float products[pointCount * groupTiles * mostVectors * block];
  int64_t channels = source.channels(), lanes = panel.vectors * block;
  int64_t tiles = std::min(groupTiles, strip.tiles - group * groupTiles);
  const float *ofGroup = matrices.source + group * groupTiles * pointCount * channels;
  const float *ofPanel =
      matrices.weight + pointCount * channels * (panel.firstBlock - bundle.firstBlock) * block;
  for (int64_t point = 0; point < pointCount; ++point)
    for (int64_t tile = 0; tile < tiles;) {
      int64_t rows = std::min(mostRows(panel.vectors), tiles - tile);
      registerProduct(rows, panel.vectors, false)(
          ofGroup + (point * groupTiles + tile) * channels, ofPanel + point * channels * lanes,
          products + (point * groupTiles + tile) * lanes, parts[static_cast<size_t>(slice)],
          {.aRow = channels, .aStep = 1, .bStep = lanes, .cRow = lanes}, false);
      tile += rows;
    }
  if (result.dtype == DType::BF16)
    writeGroup(strip, panel, slice, group, products, operands.bias,
               static_cast<uint16_t *>(operands.result));
  else
    writeGroup(strip, panel, slice, group, products, operands.bias,
               static_cast<float *>(operands.result));
}

//===- Filter gradients -----------------------------------------------------------------------===//

/// The sums of a plane, panel and point are a matrix with a row per channel of the source.
void WinogradConv::addGradient(const Bundle &bundle, int64_t task, const Step &step, bool isFirst,
                               const Matrices &matrices) const {
  const Panel &panel = panels[static_cast<size_t>(bundle.firstPanel + task % bundle.panels)];
  int64_t point = task / bundle.panels % pointCount, plane = task / bundle.panels / pointCount;
  int64_t channels = source.channels(), lanes = panel.vectors * block;
  const float *ofSource = matrices.source + point * groupTiles * channels;
  const float *ofResult =
      matrices.result + point * groupTiles * result.channels() + panel.firstBlock * block;
  float *to = matrices.weight + plane * planeElements() +
              pointCount * channels * (panel.firstBlock - bundle.firstBlock) * block +
              point * channels * lanes;
  const Parts &ofPlane = parts[static_cast<size_t>(step.number * windowDepth + plane)];
  for (int64_t channel = 0; channel < channels;) {
    int64_t rows = std::min(mostRows(panel.vectors), channels - channel);
    registerProduct(rows, panel.vectors, true)(
        ofSource + channel, ofResult, to + channel * lanes, ofPlane,
        {.aRow = 1, .aStep = channels, .bStep = result.channels(), .cRow = lanes}, !isFirst);
    channel += rows;
  }
}

__attribute__((target("avx512f,avx512bw"))) void WinogradConv::writeGradient(const Bundle &bundle,
                                                                             int64_t task,
                                                                             const float *sums,
                                                                             float *to) const {
  int64_t plane = task % windowDepth;
  int64_t s = task / windowDepth % source.blocks;
  int64_t r = bundle.firstBlock + task / windowDepth / source.blocks;
  auto panel =
      std::ranges::find_if(panels, [&](const Panel &it) { return r < it.firstBlock + it.vectors; });
  int64_t lanes = panel->vectors * block, ofShare = windowDepth * planeElements();
  const float *ofPanel =
      sums + plane * planeElements() +
      pointCount * source.channels() * (panel->firstBlock - bundle.firstBlock) * block;
  float *ofBlock = to + ((r * source.blocks + s) * windowDepth + plane) * window * block * block;
  for (int64_t i = 0; i < block; ++i) {
    const float *from = ofPanel + (s * block + i) * lanes + (r - panel->firstBlock) * block;
    transformTile<WindowGradient>(
        [&](size_t y, size_t x) AVX512_LAMBDA {
          const float *first = from + (y * reach + x) * source.channels() * lanes;
          __m512 sum = _mm512_load_ps(first);
          for (int64_t share = 1; share < shares; ++share)
            sum += _mm512_load_ps(first + share * ofShare);
          return sum;
        },
        [&](size_t y, size_t x, __m512 value) AVX512_LAMBDA {
          _mm512_storeu_ps(ofBlock + (y * 3 + x) * block * block + i * block, value);
        });
  }
}

void WinogradConv::writeGradients(const Bundle &bundle, const float *sums, float *to) const {
  parallelFor(windowDepth * source.blocks * bundle.blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task)
      writeGradient(bundle, task, sums, to);
  });
}

//===- Runs -----------------------------------------------------------------------------------===//

/// `body(task, thread)`
template <typename Body> static void onThreads(int64_t tasks, Body body) {
  struct Context {
    ChunkQueue queue;
    Body *body;
  } context{{tasks, 1, teamSize()}, &body};
  runOnTeam(
      [](void *opaque, unsigned thread) {
        auto &shared = *static_cast<Context *>(opaque);
        shared.queue.drain(thread,
                           [&](int64_t task, int64_t) { (*shared.body)(task, int64_t{thread}); });
      },
      &context);
}

void WinogradConv::convolveOwnStrips(const Operands &operands, float *workspace) const {
  const Bundle &all = bundles.front();
  transformWeights(all, operands, workspace);
  onThreads(static_cast<int64_t>(strips.size()), [&](int64_t task, int64_t thread) {
    const Strip &strip = strips[static_cast<size_t>(task)];
    Matrices matrices = matricesOf(workspace, 0, thread);
    forSteps(strip, [&](const Step &step) {
      for (int64_t i = 0; i < step.newSlices; ++i)
        transformSlice(strip, step, i, 0, strip.tiles, operands, matrices);
      for (const Panel &panel : panels)
        multiplyGroup(strip, all, panel, step.firstSlice, 0, operands, matrices);
    });
  });
}

void WinogradConv::differentiateOwnStrips(const Operands &operands, float *workspace) const {
  const Bundle &all = bundles.front();
  auto count = static_cast<int64_t>(strips.size());
  onThreads(shares, [&](int64_t share, int64_t thread) {
    Matrices matrices = matricesOf(workspace, share, thread);
    bool isFirst = true;
    for (int64_t i = count * share / shares; i < count * (share + 1) / shares; ++i) {
      const Strip &strip = strips[static_cast<size_t>(i)];
      forSteps(strip, [&](const Step &step) {
        for (int64_t slice = 0; slice < step.newSlices + step.slices; ++slice)
          transformSlice(strip, step, slice, 0, strip.tiles, operands, matrices);
        for (int64_t task = 0; task < windowDepth * pointCount * all.panels; ++task)
          addGradient(all, task, step, isFirst, matrices);
        isFirst = false;
      });
    }
  });
  writeGradients(all, workspace, operands.gradient);
}

void WinogradConv::shareStrips(const Operands &operands, float *workspace) const {
  Matrices matrices = matricesOf(workspace, 0, 0);
  bool isFirst = true;
  auto forTasks = [](int64_t tasks, auto body) {
    parallelFor(tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task)
        body(task);
    });
  };
  for (const Strip &strip : strips)
    forSteps(strip, [&](const Step &step) {
      int64_t tasksOfSlice = ceilDiv(strip.tiles, taskTiles);
      forTasks((step.newSlices + (isOfFilter() ? step.slices : 0)) * tasksOfSlice,
               [&](int64_t task) {
                 int64_t begin = task % tasksOfSlice * taskTiles;
                 transformSlice(strip, step, task / tasksOfSlice, begin,
                                std::min(begin + taskTiles, strip.tiles), operands, matrices);
               });
      for (const Bundle &bundle : bundles) {
        if (isOfFilter()) {
          forTasks(windowDepth * pointCount * bundle.panels,
                   [&](int64_t task) { addGradient(bundle, task, step, isFirst, matrices); });
          if (bundles.size() > 1)
            writeGradients(bundle, matrices.weight, operands.gradient);
          continue;
        }
        if (isFirst)
          transformWeights(bundle, operands, matrices.weight);
        int64_t groups = groupsOf(strip), tasksOfPanel = step.slices * groups;
        forTasks(bundle.panels * tasksOfPanel, [&](int64_t task) {
          multiplyGroup(
              strip, bundle, panels[static_cast<size_t>(bundle.firstPanel + task / tasksOfPanel)],
              step.firstSlice + task % tasksOfPanel / groups, task % groups, operands, matrices);
        });
      }
      isFirst = false;
    });
  if (isOfFilter() && bundles.size() == 1)
    writeGradients(bundles.front(), matrices.weight, operands.gradient);
}

void WinogradConv::run(std::span<void *const> buffers) const {
  auto *workspace = static_cast<float *>(buffers.back());
  Operands operands;
  operands.source = buffers[0];
  if (isOfFilter()) {
    operands.result = buffers[1];
    operands.gradient = static_cast<float *>(buffers[2]);
  } else {
    operands.weight = buffers[1];
    operands.bias = hasBias ? static_cast<const float *>(buffers[2]) : nullptr;
    operands.result = buffers[buffers.size() - 2];
  }
  if (places == 0)
    shareStrips(operands, workspace);
  else if (isOfFilter())
    differentiateOwnStrips(operands, workspace);
  else
    convolveOwnStrips(operands, workspace);
}

} // namespace dlc::rt
