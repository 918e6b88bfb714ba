#include "runtime/cpu/kernels/WinogradPlan.h"

#include "runtime/cpu/kernels/WinogradRequest.h"

#include <algorithm>
#include <numeric>

namespace dlc::rt {
namespace {

using namespace winograd;

/// Of the matrices of a strip that the team shares, unless the weight's are larger: then too much
/// would be read again for each strip. Most of the sums that each share has.
constexpr int64_t sharedElements = 1 << 20;
/// Of the matrices of a filter gradient's strip that is a thread's own.
constexpr int64_t ownStripElements = 1 << 19;
/// Of a chunk, at most: at a point a panel's weights stay in the first-level cache, at all points
/// in the second-level cache beside the sums.
constexpr int64_t chunkChannels = 48;
/// Of a run, at most: their sums stay in the second-level cache.
constexpr int64_t mostRunGroups = 3;

} // namespace

WinogradPlan::Images WinogradPlan::Images::of(const OperandType &operand, int64_t block) {
  const std::vector<int64_t> &shape = operand.shape;
  size_t rank = shape.size();
  auto step = [&](size_t dim, int64_t elements) {
    return operand.layout->offsetAlong(shape, dim, elements);
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
                .blockStep = step(1, block),
                .block = block};
  return images;
}

WinogradPlan::WinogradPlan(const KernelRequest &request, int64_t block, int64_t mostVectors)
    : block(block), mostVectors(mostVectors), op(request.op), hasBias(request.bias),
      hasRelu(request.relu), source(Images::of(request.operands[sourceOperand()], block)),
      result(Images::of(request.operands[resultOperand(request)], block)),
      threads(request.threads) {
  const OperandType &weight = request.operands[*weightOperand(request.op)];
  isWeightNarrow = weight.dtype == DType::BF16;
  const std::vector<int64_t> &extents = weight.shape;
  size_t rank = extents.size();
  auto padding = [&](size_t dim) {
    int64_t low = request.paddingLow[dim - 2];
    return request.op == KernelOp::ConvGradData ? extents[dim] - 1 - low : low;
  };
  paddingRow = padding(rank - 2);
  paddingColumn = padding(rank - 1);
  if (rank == 5) {
    windowDepth = extents[2];
    paddingDepth = padding(2);
  }
  cut();
}

void WinogradPlan::cut() {
  bool isFlat = windowDepth == 1 && paddingDepth == 0 && source.depth == 1;
  stacked = isFlat ? source.volumes : 1;
  imageTileRows = ceilDiv(result.rows, tileSide);
  tileRows = imageTileRows * stacked;
  tileColumns = ceilDiv(result.columns, tileSide);
  panels = inChunksOf(mostVectors, result.blocks);
  source.chunks = inChunksOf(source.blocks, source.blocks);
  result.chunks = inChunksOf(result.blocks, result.blocks);
  isShared = !planOwnStrips();
  if (isShared) {
    planSharedStrips();
  } else {
    weightBlocks = result.blocks;
    bundles = {{0, static_cast<int64_t>(panels.size()), 0, result.blocks}};
  }
  source.slots = stepSlices + windowDepth - 1;
  result.slots = stepSlices;
  planParts();
}

/// So many blocks of channels, in as even parts as there are with at most so many.
std::vector<WinogradPlan::Channels> WinogradPlan::inChunksOf(int64_t most, int64_t blocks) {
  std::vector<Channels> chunks;
  int64_t count = ceilDiv(blocks, most);
  for (int64_t i = 0; i < count; ++i) {
    int64_t first = blocks * i / count;
    chunks.push_back({first, blocks * (i + 1) / count - first, i});
  }
  return chunks;
}

/// False where that would keep threads waiting or take too much memory.
bool WinogradPlan::planOwnStrips() {
  int64_t volumes = result.volumes / stacked, stripSlices = result.depth;
  if (isOfFilter()) {
    if (windowDepth * pointCount * source.channels() * result.channels() > sharedElements)
      return false;
    shares = threads * (threads > 4 ? 1 : 2);
    int64_t ofTile = pointCount * (windowDepth * source.channels() + result.channels());
    int64_t tiles = std::max(ownStripElements / ofTile / groupTiles, int64_t{1}) * groupTiles;
    int64_t number = ceilDiv(tilesOfSlice(), tiles);
    int64_t even = std::lcm(volumes, shares); // of all strips: each share has as many
    number = ceilDiv(number * volumes, even) * even / volumes;
    if (number * groupTiles / 2 > tilesOfSlice())
      return false;
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
  cutStrips(number, stripSlices);
  return true;
}

void WinogradPlan::planSharedStrips() {
  shares = 1;
  int64_t ofTile = pointCount * (source.channels() + (isOfFilter() ? result.channels() : 0));
  int64_t budget =
      std::max(sharedElements, windowDepth * pointCount * source.channels() * result.channels());
  int64_t tiles = std::clamp<int64_t>(budget / ofTile / windowDepth, 1, tilesOfSlice());
  stepSlices = std::clamp<int64_t>(budget / (ofTile * tiles) - windowDepth + 1, 1, result.depth);
  stepSlices = ceilDiv(result.depth, ceilDiv(result.depth, stepSlices));
  cutStrips(ceilDiv(tilesOfSlice(), tiles), result.depth);
  // A few groups alone do not need weights or sums that go through memory.
  int64_t groups = stepSlices * ceilDiv(stripTiles, groupTiles);
  bool isAlone = isOneStep() && groups <= 2 * mostRunGroups;
  source.chunks = inChunksOf((isAlone ? 1 : 2) * chunkChannels / block, source.blocks);
  if (isOfFilter()) {
    result.chunks = panels;
    if (!isAlone)
      planBundles(windowDepth * pointCount);
    return;
  }
  // A team has some tasks for each thread.
  auto count = static_cast<int64_t>(panels.size());
  int64_t runs = std::max(ceilDiv(groups, mostRunGroups), ceilDiv(4 * threads, count));
  runGroups = ceilDiv(groups, std::min(runs, groups));
  if (!isAlone)
    planBundles(ceilDiv(groups, runGroups));
}

/// Bundles of so many panels that a team has enough to share. More than one strip or step would
/// transform the weights of each bundle again.
void WinogradPlan::planBundles(int64_t tasksOfPanel) {
  auto count = static_cast<int64_t>(panels.size()), atOnce = count;
  if (isOneStep()) {
    int64_t ofPanel = windowDepth * pointCount * source.channels() * mostVectors * block;
    atOnce = std::max(ceilDiv(sharedElements, ofPanel), ceilDiv(4 * threads, tasksOfPanel));
  }
  int64_t number = ceilDiv(count, std::min(atOnce, count));
  for (int64_t i = 0; i < number; ++i) {
    int64_t first = count * i / number, last = count * (i + 1) / number - 1;
    int64_t firstBlock = panels[static_cast<size_t>(first)].firstBlock;
    const Channels &end = panels[static_cast<size_t>(last)];
    bundles.push_back(
        {first, last + 1 - first, firstBlock, end.firstBlock + end.blocks - firstBlock});
    weightBlocks = std::max(weightBlocks, bundles.back().blocks);
  }
}

void WinogradPlan::cutStrips(int64_t stripsOfSlice, int64_t stripSlices) {
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

int64_t WinogradPlan::weightRows() const {
  return source.channels() + static_cast<int64_t>(source.chunks.size());
}

/// Of the weight's matrices that are in memory together, or of the sums that a share has.
int64_t WinogradPlan::weightElements() const {
  return windowDepth * pointCount * weightRows() * weightBlocks * block;
}

int64_t WinogradPlan::stripElements() const {
  return rowsOfSlice() *
         (source.slots * source.channels() + (isOfFilter() ? result.slots * result.channels() : 0));
}

/// What a thread has of a strip that the team shares: of a chunk and a panel a filter gradient's
/// sums, else the weights, unless they are in memory, and of a panel a run's sums.
int64_t WinogradPlan::ownElements() const {
  if (!isShared)
    return 0;
  auto most = [](const std::vector<Channels> &all) {
    return std::ranges::max(all, {}, &Channels::blocks).blocks;
  };
  int64_t rows = isOfFilter() ? 0 : runGroups * groupRows;
  if (bundles.empty())
    rows += paddedRows(most(source.chunks) * block);
  return pointCount * rows * most(panels) * block;
}

uint64_t WinogradPlan::workspaceBytes() const {
  int64_t elements =
      shares * weightElements() + places() * stripElements() + threads * ownElements();
  return static_cast<uint64_t>(elements) * sizeof(float);
}

/// A transform of a tile of a channel takes about as long as 300 products, and that of a window
/// 200.
uint64_t WinogradPlan::flops() const {
  int64_t tiles = result.volumes / stacked * result.depth * tilesOfSlice();
  int64_t pairs = windowDepth * source.channels() * result.channels();
  int64_t channels = source.channels() + result.channels();
  return static_cast<uint64_t>(2 * (tiles * (pointCount * pairs + 300 * channels) + 200 * pairs));
}

WinogradPlan::Matrices WinogradPlan::matricesOf(float *workspace, int64_t share,
                                                int64_t thread) const {
  float *ofStrips = workspace + shares * weightElements();
  Matrices matrices;
  matrices.weight = workspace + share * weightElements();
  matrices.source = ofStrips + (isShared ? 0 : thread) * stripElements();
  matrices.result = matrices.source + source.slots * source.channels() * rowsOfSlice();
  matrices.own = ofStrips + places() * stripElements() + thread * ownElements();
  return matrices;
}

/// Planes of the window that are inside of the volume at this slice of the result.
WinogradPlan::Parts WinogradPlan::partsOfSlice(int64_t slice) const {
  Parts found;
  for (int64_t plane = 0; plane < windowDepth; ++plane)
    if (int64_t from = slice - paddingDepth + plane; from >= 0 && from < source.depth)
      found.push_back(
          {slotOf(from) * rowsOfSlice(), plane * pointCount * weightRows(), source.channels()});
  return found;
}

/// Groups of a strip's tiles whose windows have this plane inside of the volume.
WinogradPlan::Parts WinogradPlan::partsOfPlane(const Strip &strip, const Step &step,
                                               int64_t plane) const {
  Parts found;
  for (int64_t i = 0; i < step.slices; ++i) {
    int64_t from = step.firstSlice + i - paddingDepth + plane;
    if (from < 0 || from >= source.depth)
      continue;
    for (int64_t tile = 0; tile < strip.tiles; tile += groupTiles)
      found.push_back({slotOf(from) * rowsOfSlice() + tile / groupTiles * groupRows * pointCount,
                       i * rowsOfSlice() + tile / groupTiles * groupRows * pointCount,
                       std::min(groupTiles, strip.tiles - tile)});
  }
  return found;
}

void WinogradPlan::planParts() {
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

} // namespace dlc::rt
