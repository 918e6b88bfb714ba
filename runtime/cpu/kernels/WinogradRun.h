// Runs a WinogradPlan by the instructions of a `Unit` of VectorUnits.h. For the files that compile
// it, each for one unit.
//
// Whatever this file includes, but for others like it, must stand ahead of the pragma in the files
// that compile it (WinogradAvx512.cpp).
#pragma once

#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/kernels/RegisterProduct.h"
#include "runtime/cpu/kernels/TileTransforms.h"
#include "runtime/cpu/kernels/WinogradPlan.h"

#include <algorithm>
#include <type_traits>

namespace dlc::rt {

template <typename Unit> class WinogradRun final : public WinogradPlan {
public:
  explicit WinogradRun(const KernelRequest &request)
      : WinogradPlan(request, Unit::lanes, Unit::mostVectors) {}
  void run(std::span<void *const> buffers) const override;

private:
  using Vector = typename Unit::Vector;
  static constexpr int64_t block = Unit::lanes;
  static constexpr auto reach = tiles::reach;
  static_assert(tiles::side == tileSide && reach == tileReach);
  static constexpr int64_t window = 3 * 3;    // of a plane
  static constexpr int64_t taskTiles = 8;     // where the team shares a strip
  static constexpr int64_t lineElements = 16; // of a cache

  template <typename Transform, typename Element>
  void transformTiles(const Images &images, const Element *from, const Strip &strip, int64_t slice,
                      int64_t slot, int64_t begin, int64_t end, float *to) const;
  void transformSlice(const Strip &strip, const Step &step, int64_t i, int64_t begin, int64_t end,
                      const Operands &operands, const Matrices &matrices) const;
  template <typename Body> void forBlocks(const Bundle &bundle, const Body &body) const;
  void transformWeight(const void *weight, int64_t plane, int64_t s, int64_t r, int64_t rows,
                       int64_t lanes, float *to) const;
  void transformRow(const void *weight, int64_t plane, int64_t s, const Channels &chunk,
                    const Channels &panel, float *to) const;
  void transformWeights(const Bundle &bundle, const void *weight, float *to) const;
  template <typename Element>
  void writeGroup(const Strip &strip, const Channels &panel, int64_t slice, int64_t group,
                  const float *products, const float *bias, Element *to) const;
  void writeGroup(const Strip &strip, const Channels &panel, int64_t slice, int64_t group,
                  const float *products, const Operands &operands) const;
  void multiplyStrip(const Strip &strip, const Channels &panel, int64_t slice,
                     const Operands &operands, const Matrices &matrices) const;
  static void multiplyRows(int64_t tiles, const float *a, int64_t width, const float *b, float *to,
                           int64_t lanes, bool adds);
  void multiplyRun(const Strip &strip, const Step &step, const Bundle *bundle,
                   const Channels &panel, int64_t run, const Operands &operands,
                   const Matrices &matrices) const;
  void addGradient(const Channels &chunk, const Channels &panel, int64_t plane, int64_t point,
                   const Step &step, bool adds, const Matrices &matrices, float *to) const;
  void writeGradient(int64_t plane, int64_t s, int64_t r, int64_t rows, int64_t lanes,
                     const float *sums, float *to) const;
  void writeGradients(const Bundle &bundle, const float *sums, float *to) const;
  void differentiateChunk(const Step &step, int64_t task, const Operands &operands,
                          const Matrices &matrices) const;
  void differentiateBundle(const Bundle &bundle, const Step &step, bool adds,
                           const Matrices &matrices) const;
  /// Where, in the weight's matrices or in the sums, those of a bundle's panel, plane of the window
  /// and chunk lie, point by point.
  int64_t weightOffset(const Bundle &bundle, const Channels &panel, int64_t plane,
                       const Channels &chunk) const {
    int64_t ahead = windowDepth * (panel.firstBlock - bundle.firstBlock) + plane * panel.blocks;
    int64_t rows = chunk.firstBlock * block + chunk.number;
    return pointCount * block * (ahead * weightRows() + rows * panel.blocks);
  }
  /// `body(row, rows)` of what registers hold the sums of.
  template <typename Body> static void forRows(int64_t rows, int64_t vectors, const Body &body) {
    int64_t most = Unit::mostRows(vectors);
    for (int64_t row = 0; row < rows; row += most)
      body(row, std::min(most, rows - row));
  }

  void convolveOwnStrips(const Operands &operands, float *workspace) const;
  void differentiateOwnStrips(const Operands &operands, float *workspace) const;
  void shareStrips(const Operands &operands, float *workspace) const;
};

/// `body(task)`
template <typename Body> static void forTasks(int64_t tasks, const Body &body) {
  parallelFor(tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task)
      body(task);
  });
}

//===- Images to matrices ---------------------------------------------------------------------===//

/// Tiles of a slice. At each point a group's matrix has a row per tile.
template <typename Unit>
template <typename Transform, typename Element>
void WinogradRun<Unit>::transformTiles(const Images &images, const Element *from,
                                       const Strip &strip, int64_t slice, int64_t slot,
                                       int64_t begin, int64_t end, float *to) const {
  constexpr bool isSource = std::is_same_v<Transform, tiles::Source>;
  constexpr auto extent = static_cast<int64_t>(Transform::from);
  static constexpr Element zeros[block] = {};
  for (int64_t tile = begin; tile < end; ++tile) {
    int64_t place = strip.firstTile + tile;
    int64_t stackRow = place / tileColumns, column = place % tileColumns;
    const Element *image = from + (strip.volume + stackRow / imageTileRows) * images.volumeStep +
                           slice * images.depthStep;
    int64_t firstRow = stackRow % imageTileRows * tileSide - (isSource ? paddingRow : 0);
    int64_t firstColumn = column * tileSide - (isSource ? paddingColumn : 0);
    int64_t row =
        slot * rowsOfSlice() + tile / groupTiles * groupRows * pointCount + tile % groupTiles;
    // What lies outside of the image is read from zeros, which all blocks have in common.
    const Element *places[extent][extent];
    int64_t steps[extent][extent];
    for (int64_t i = 0; i < extent; ++i)
      for (int64_t j = 0; j < extent; ++j) {
        int64_t y = firstRow + i, x = firstColumn + j;
        bool exists = y >= 0 && y < images.rows && x >= 0 && x < images.columns;
        places[i][j] = exists ? image + y * images.rowStep + x * images.columnStep : zeros;
        steps[i][j] = exists ? images.blockStep : 0;
      }
    for (const Channels &chunk : images.chunks) {
      int64_t width = chunk.blocks * block;
      float *ofChunk = to + chunkOffset(images, chunk) + row * width;
      for (int64_t c = 0; c < chunk.blocks; ++c)
        tiles::transformTile<Unit, Transform>(
            [&](size_t i, size_t j) DLC_INLINE {
              return Unit::load(places[i][j] + (chunk.firstBlock + c) * steps[i][j]);
            },
            [&](size_t i, size_t j, Vector value) DLC_INLINE {
              Unit::store(ofChunk + (i * reach + j) * groupRows * width + c * block, value);
            });
    }
  }
}

/// The i-th slice that is new to a step: of the source, and then of a filter gradient's other
/// operand.
template <typename Unit>
void WinogradRun<Unit>::transformSlice(const Strip &strip, const Step &step, int64_t i,
                                       int64_t begin, int64_t end, const Operands &operands,
                                       const Matrices &matrices) const {
  auto transform = [&](auto kind, const Images &images, const void *from, int64_t slice,
                       int64_t slot, float *to) {
    auto transformFrom = [&](const auto *elements) {
      transformTiles<decltype(kind)>(images, elements, strip, slice, slot, begin, end, to);
    };
    if constexpr (Unit::readsBF16)
      if (images.dtype == DType::BF16)
        return transformFrom(static_cast<const uint16_t *>(from));
    transformFrom(static_cast<const float *>(from));
  };
  int64_t slice = step.firstNewSlice + i, other = i - step.newSlices;
  if (i < step.newSlices)
    transform(tiles::Source(), source, operands.source, slice, slotOf(slice), matrices.source);
  else
    transform(tiles::ResultGradient(), result, operands.result, step.firstSlice + other, other,
              matrices.result);
}

//===- The weight -----------------------------------------------------------------------------===//

/// `body(plane, block of the source, its chunk, panel)`, on the team.
template <typename Unit>
template <typename Body>
void WinogradRun<Unit>::forBlocks(const Bundle &bundle, const Body &body) const {
  forTasks(bundle.panels * windowDepth * source.blocks, [&](int64_t task) {
    int64_t s = task % source.blocks, plane = task / source.blocks % windowDepth;
    int64_t panel = bundle.firstPanel + task / source.blocks / windowDepth;
    auto chunk = std::ranges::find_if(
        source.chunks, [&](const Channels &it) { return s < it.firstBlock + it.blocks; });
    body(plane, s, *chunk, panels[static_cast<size_t>(panel)]);
  });
}

/// One block of channels by channels of one plane of the window. A point's matrix has so many rows,
/// one per channel of the source, and lanes.
template <typename Unit>
void WinogradRun<Unit>::transformWeight(const void *weight, int64_t plane, int64_t s, int64_t r,
                                        int64_t rows, int64_t lanes, float *to) const {
  bool isGradient = op == KernelOp::ConvGradData;
  int64_t blockPlace = isGradient ? s * result.blocks + r : r * source.blocks + s;
  int64_t ofPlane = isGradient ? windowDepth - 1 - plane : plane;
  int64_t first = (blockPlace * windowDepth + ofPlane) * window * block * block;
  alignas(64) float taps[window * block * block];
  auto widen = [&](const auto *from) DLC_INLINE {
    for (int64_t i = 0; i < window * block * block; i += block)
      Unit::store(taps + i, Unit::load(from + first + i));
  };
  if (!Unit::readsBF16 || !isWeightNarrow)
    widen(static_cast<const float *>(weight));
  else if constexpr (Unit::readsBF16)
    widen(static_cast<const uint16_t *>(weight));
  // Lanes are the result's channels; those of a data gradient are rows of the block.
  if (isGradient)
    for (int64_t tap = 0; tap < window; ++tap)
      tiles::transpose<Unit>(taps + tap * block * block);
  for (int64_t i = 0; i < block; ++i)
    tiles::transformTile<Unit, tiles::Window>(
        [&](size_t y, size_t x) DLC_INLINE {
          size_t tap = y * 3 + x;
          return Unit::load(taps + (isGradient ? window - 1 - tap : tap) * block * block +
                            i * block);
        },
        [&](size_t y, size_t x, Vector value)
            DLC_INLINE { Unit::store(to + ((y * reach + x) * rows + i) * lanes, value); });
}

/// One block of the source's channels by a panel.
template <typename Unit>
void WinogradRun<Unit>::transformRow(const void *weight, int64_t plane, int64_t s,
                                     const Channels &chunk, const Channels &panel,
                                     float *to) const {
  int64_t lanes = panel.blocks * block;
  for (int64_t r = 0; r < panel.blocks; ++r)
    transformWeight(weight, plane, s, panel.firstBlock + r, paddedRows(chunk.blocks * block), lanes,
                    to + (s - chunk.firstBlock) * block * lanes + r * block);
}

template <typename Unit>
void WinogradRun<Unit>::transformWeights(const Bundle &bundle, const void *weight,
                                         float *to) const {
  forBlocks(bundle, [&](int64_t plane, int64_t s, const Channels &chunk, const Channels &panel) {
    transformRow(weight, plane, s, chunk, panel, to + weightOffset(bundle, panel, plane, chunk));
  });
}

//===- Products to images ---------------------------------------------------------------------===//

template <typename Unit>
template <typename Element>
void WinogradRun<Unit>::writeGroup(const Strip &strip, const Channels &panel, int64_t slice,
                                   int64_t group, const float *products, const float *bias,
                                   Element *images) const {
  int64_t lanes = panel.blocks * block;
  int64_t tiles = std::min(groupTiles, strip.tiles - group * groupTiles);
  for (int64_t v = 0; v < panel.blocks; ++v) {
    int64_t ofBlock = panel.firstBlock + v;
    Vector added = hasBias ? Unit::load(bias + ofBlock * block) : Unit::zero();
    Vector least = Unit::splat(hasRelu ? 0.0F : -__builtin_inff());
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
      tiles::transformTile<Unit, tiles::Result>(
          [&](size_t i, size_t j)
              DLC_INLINE { return Unit::load(from + (i * reach + j) * groupRows * lanes); },
          [&](size_t i, size_t j, Vector value) DLC_INLINE {
            if (static_cast<int64_t>(i) < rows && static_cast<int64_t>(j) < columns)
              Unit::store(to + static_cast<int64_t>(i) * result.rowStep +
                              static_cast<int64_t>(j) * result.columnStep,
                          Unit::max(value + added, least));
          });
    }
  }
}

template <typename Unit>
void WinogradRun<Unit>::writeGroup(const Strip &strip, const Channels &panel, int64_t slice,
                                   int64_t group, const float *products,
                                   const Operands &operands) const {
  if constexpr (Unit::readsBF16)
    if (result.dtype == DType::BF16)
      return writeGroup(strip, panel, slice, group, products, operands.bias,
                        static_cast<uint16_t *>(operands.result));
  writeGroup(strip, panel, slice, group, products, operands.bias,
             static_cast<float *>(operands.result));
}

/// Of a thread's own, which is one group, by all the weight's matrices.
template <typename Unit>
void WinogradRun<Unit>::multiplyStrip(const Strip &strip, const Channels &panel, int64_t slice,
                                      const Operands &operands, const Matrices &matrices) const {
  alignas(64) float products[pointCount * groupRows * Unit::mostVectors * block];
  int64_t channels = source.channels(), lanes = panel.blocks * block;
  const float *ofPanel =
      matrices.weight + weightOffset(bundles.front(), panel, 0, source.chunks.front());
  const Parts &ofSlice = parts[static_cast<size_t>(slice)];
  for (int64_t point = 0; point < pointCount; ++point)
    forRows(strip.tiles, panel.blocks, [&](int64_t row, int64_t rows) {
      registerProduct<Unit>(rows, panel.blocks, false)(
          matrices.source + (point * groupRows + row) * channels,
          ofPanel + point * paddedRows(channels) * lanes,
          products + (point * groupRows + row) * lanes, ofSlice,
          {.aRow = channels, .aStep = 1, .bStep = lanes, .cRow = lanes}, false);
    });
  writeGroup(strip, panel, slice, 0, products, operands);
}

/// A group's rows of a chunk at a point.
template <typename Unit>
void WinogradRun<Unit>::multiplyRows(int64_t tiles, const float *a, int64_t width, const float *b,
                                     float *to, int64_t lanes, bool adds) {
  const ProductPart whole[] = {{0, 0, width}};
  int64_t vectors = lanes / block;
  forRows(tiles, vectors, [&](int64_t row, int64_t rows) {
    registerProduct<Unit>(rows, vectors,
                          false)(a + row * width, b, to + row * lanes, whole,
                                 {.aRow = width, .aStep = 1, .bStep = lanes, .cRow = lanes}, adds);
  });
}

/// Chunk by chunk of what is summed over, by weights of a bundle or, if there is none, by what is
/// transformed for this run.
template <typename Unit>
void WinogradRun<Unit>::multiplyRun(const Strip &strip, const Step &step, const Bundle *bundle,
                                    const Channels &panel, int64_t run, const Operands &operands,
                                    const Matrices &matrices) const {
  int64_t groups = groupsOf(strip), lanes = panel.blocks * block;
  int64_t ofGroup = groupRows * pointCount * lanes;
  int64_t first = run * runGroups, end = std::min(first + runGroups, step.slices * groups);
  float *sums = matrices.own, *own = sums + runGroups * ofGroup;
  for (int64_t i = first; i < end; ++i)
    if (parts[static_cast<size_t>(step.firstSlice + i / groups)].empty())
      std::fill_n(sums + (i - first) * ofGroup, ofGroup, 0.0F);
  for (int64_t plane = 0; plane < windowDepth; ++plane)
    for (const Channels &chunk : source.chunks) {
      int64_t width = chunk.blocks * block;
      if (!bundle)
        for (int64_t s = 0; s < chunk.blocks; ++s)
          transformRow(operands.weight, plane, chunk.firstBlock + s, chunk, panel, own);
      const float *weights =
          bundle ? matrices.weight + weightOffset(*bundle, panel, plane, chunk) : own;
      for (int64_t point = 0; point < pointCount; ++point)
        for (int64_t i = first; i < end; ++i) {
          int64_t from = step.firstSlice + i / groups - paddingDepth + plane, group = i % groups;
          if (from < 0 || from >= source.depth)
            continue;
          bool adds = chunk.firstBlock > 0 || (plane > 0 && from > 0);
          int64_t row = slotOf(from) * rowsOfSlice() + (group * pointCount + point) * groupRows;
          const float *rows = matrices.source + chunkOffset(source, chunk) + row * width;
          const float *next = rows + groupRows * width; // of the next point
          for (int64_t ahead = 0; ahead < groupTiles * width; ahead += lineElements)
            __builtin_prefetch(next + ahead, 0, 2);
          multiplyRows(std::min(groupTiles, strip.tiles - group * groupTiles), rows, width,
                       weights + point * paddedRows(width) * lanes,
                       sums + (i - first) * ofGroup + point * groupRows * lanes, lanes, adds);
        }
    }
  for (int64_t i = first; i < end; ++i)
    writeGroup(strip, panel, step.firstSlice + i / groups, i % groups, sums + (i - first) * ofGroup,
               operands);
}

//===- Filter gradients -----------------------------------------------------------------------===//

/// The sums of a chunk, plane, panel and point are a matrix with a row per channel of the source.
template <typename Unit>
void WinogradRun<Unit>::addGradient(const Channels &chunk, const Channels &panel, int64_t plane,
                                    int64_t point, const Step &step, bool adds,
                                    const Matrices &matrices, float *to) const {
  int64_t width = chunk.blocks * block, lanes = panel.blocks * block;
  // A panel is a chunk of the result's unless that has one of all channels.
  bool isWhole = result.chunks.size() == 1;
  int64_t resultWidth = isWhole ? result.channels() : lanes;
  const float *ofSource = matrices.source + chunkOffset(source, chunk) + point * groupRows * width;
  const float *ofResult = matrices.result + point * groupRows * resultWidth +
                          (isWhole ? panel.firstBlock * block : chunkOffset(result, panel));
  const Parts &ofPlane = parts[static_cast<size_t>(step.number * windowDepth + plane)];
  forRows(width, panel.blocks, [&](int64_t row, int64_t rows) {
    registerProduct<Unit>(rows, panel.blocks, true)(
        ofSource + row, ofResult, to + row * lanes, ofPlane,
        {.aRow = 1, .aStep = width, .bStep = resultWidth, .cRow = lanes}, adds);
  });
}

/// One block of channels by channels of one plane of the window, of sums as transformWeight lays
/// them out.
template <typename Unit>
void WinogradRun<Unit>::writeGradient(int64_t plane, int64_t s, int64_t r, int64_t rows,
                                      int64_t lanes, const float *sums, float *to) const {
  float *ofBlock = to + ((r * source.blocks + s) * windowDepth + plane) * window * block * block;
  int64_t ofShare = weightElements();
  for (int64_t i = 0; i < block; ++i)
    tiles::transformTile<Unit, tiles::WindowGradient>(
        [&](size_t y, size_t x) DLC_INLINE {
          const float *first = sums + ((y * reach + x) * rows + i) * lanes;
          Vector sum = Unit::load(first);
          for (int64_t share = 1; share < shares; ++share)
            sum += Unit::load(first + share * ofShare);
          return sum;
        },
        [&](size_t y, size_t x, Vector value)
            DLC_INLINE { Unit::store(ofBlock + ((y * 3 + x) * block + i) * block, value); });
}

template <typename Unit>
void WinogradRun<Unit>::writeGradients(const Bundle &bundle, const float *sums, float *to) const {
  forBlocks(bundle, [&](int64_t plane, int64_t s, const Channels &chunk, const Channels &panel) {
    int64_t lanes = panel.blocks * block;
    const float *from =
        sums + weightOffset(bundle, panel, plane, chunk) + (s - chunk.firstBlock) * block * lanes;
    for (int64_t r = 0; r < panel.blocks; ++r)
      writeGradient(plane, s, panel.firstBlock + r, paddedRows(chunk.blocks * block), lanes,
                    from + r * block, to);
  });
}

/// Of a chunk, panel and plane of the window all that the one step has.
template <typename Unit>
void WinogradRun<Unit>::differentiateChunk(const Step &step, int64_t task, const Operands &operands,
                                           const Matrices &matrices) const {
  auto chunks = static_cast<int64_t>(source.chunks.size());
  int64_t plane = task % windowDepth;
  const Channels &chunk = source.chunks[static_cast<size_t>(task / windowDepth % chunks)];
  const Channels &panel = panels[static_cast<size_t>(task / windowDepth / chunks)];
  int64_t rows = paddedRows(chunk.blocks * block), lanes = panel.blocks * block;
  for (int64_t point = 0; point < pointCount; ++point)
    addGradient(chunk, panel, plane, point, step, false, matrices,
                matrices.own + point * rows * lanes);
  for (int64_t r = 0; r < panel.blocks; ++r)
    for (int64_t s = 0; s < chunk.blocks; ++s)
      writeGradient(plane, chunk.firstBlock + s, panel.firstBlock + r, rows, lanes,
                    matrices.own + s * block * lanes + r * block, operands.gradient);
}

template <typename Unit>
void WinogradRun<Unit>::differentiateBundle(const Bundle &bundle, const Step &step, bool adds,
                                            const Matrices &matrices) const {
  forTasks(windowDepth * pointCount * bundle.panels, [&](int64_t task) {
    const Channels &panel = panels[static_cast<size_t>(bundle.firstPanel + task % bundle.panels)];
    int64_t point = task / bundle.panels % pointCount, plane = task / bundle.panels / pointCount;
    for (const Channels &chunk : source.chunks)
      addGradient(chunk, panel, plane, point, step, adds, matrices,
                  matrices.weight + weightOffset(bundle, panel, plane, chunk) +
                      point * paddedRows(chunk.blocks * block) * panel.blocks * block);
  });
}

//===- Runs -----------------------------------------------------------------------------------===//

template <typename Unit>
void WinogradRun<Unit>::convolveOwnStrips(const Operands &operands, float *workspace) const {
  transformWeights(bundles.front(), operands.weight, workspace);
  onThreads(static_cast<int64_t>(strips.size()), [&](int64_t task, int64_t thread) {
    const Strip &strip = strips[static_cast<size_t>(task)];
    Matrices matrices = matricesOf(workspace, 0, thread);
    forSteps(strip, [&](const Step &step) {
      for (int64_t i = 0; i < step.newSlices; ++i)
        transformSlice(strip, step, i, 0, strip.tiles, operands, matrices);
      for (const Channels &panel : panels)
        multiplyStrip(strip, panel, step.firstSlice, operands, matrices);
    });
  });
}

template <typename Unit>
void WinogradRun<Unit>::differentiateOwnStrips(const Operands &operands, float *workspace) const {
  const Channels &all = source.chunks.front();
  auto count = static_cast<int64_t>(strips.size());
  onThreads(shares, [&](int64_t share, int64_t thread) {
    Matrices matrices = matricesOf(workspace, share, thread);
    bool isFirst = true;
    for (int64_t i = count * share / shares; i < count * (share + 1) / shares; ++i) {
      const Strip &strip = strips[static_cast<size_t>(i)];
      forSteps(strip, [&](const Step &step) {
        for (int64_t slice = 0; slice < step.newSlices + step.slices; ++slice)
          transformSlice(strip, step, slice, 0, strip.tiles, operands, matrices);
        for (int64_t plane = 0; plane < windowDepth; ++plane)
          for (int64_t point = 0; point < pointCount; ++point)
            for (const Channels &panel : panels)
              addGradient(all, panel, plane, point, step, !isFirst, matrices,
                          matrices.weight + weightOffset(bundles.front(), panel, plane, all) +
                              point * weightRows() * panel.blocks * block);
        isFirst = false;
      });
    }
  });
  writeGradients(bundles.front(), workspace, operands.gradient);
}

template <typename Unit>
void WinogradRun<Unit>::shareStrips(const Operands &operands, float *workspace) const {
  Matrices shared = matricesOf(workspace, 0, 0);
  auto panelCount = static_cast<int64_t>(panels.size());
  auto chunkCount = static_cast<int64_t>(source.chunks.size());
  auto multiply = [&](const Strip &strip, const Step &step, const Bundle *bundle) {
    int64_t runs = runsOf(strip, step), firstPanel = bundle ? bundle->firstPanel : 0;
    onThreads((bundle ? bundle->panels : panelCount) * runs, [&](int64_t task, int64_t thread) {
      multiplyRun(strip, step, bundle, panels[static_cast<size_t>(firstPanel + task / runs)],
                  task % runs, operands, matricesOf(workspace, 0, thread));
    });
  };
  bool isFirst = true;
  for (const Strip &strip : strips)
    forSteps(strip, [&](const Step &step) {
      int64_t tasksOfSlice = ceilDiv(strip.tiles, taskTiles);
      forTasks((step.newSlices + (isOfFilter() ? step.slices : 0)) * tasksOfSlice,
               [&](int64_t task) {
                 int64_t begin = task % tasksOfSlice * taskTiles;
                 transformSlice(strip, step, task / tasksOfSlice, begin,
                                std::min(begin + taskTiles, strip.tiles), operands, shared);
               });
      if (bundles.empty() && isOfFilter())
        onThreads(panelCount * chunkCount * windowDepth, [&](int64_t task, int64_t thread) {
          differentiateChunk(step, task, operands, matricesOf(workspace, 0, thread));
        });
      else if (bundles.empty())
        multiply(strip, step, nullptr);
      for (const Bundle &bundle : bundles) {
        if (isOfFilter()) {
          differentiateBundle(bundle, step, !isFirst, shared);
          if (bundles.size() > 1)
            writeGradients(bundle, shared.weight, operands.gradient);
          continue;
        }
        if (isFirst)
          transformWeights(bundle, operands.weight, shared.weight);
        multiply(strip, step, &bundle);
      }
      isFirst = false;
    });
  if (isOfFilter() && bundles.size() == 1)
    writeGradients(bundles.front(), shared.weight, operands.gradient);
}

template <typename Unit> void WinogradRun<Unit>::run(std::span<void *const> buffers) const {
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
  if (isShared)
    shareStrips(operands, workspace);
  else if (isOfFilter())
    differentiateOwnStrips(operands, workspace);
  else
    convolveOwnStrips(operands, workspace);
}

} // namespace dlc::rt
