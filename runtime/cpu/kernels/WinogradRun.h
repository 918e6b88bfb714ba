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
  static constexpr auto pointCount = static_cast<int64_t>(tiles::points);
  static constexpr auto tileSide = static_cast<int64_t>(tiles::side);
  static constexpr auto reach = tiles::reach;
  static constexpr int64_t window = 3 * 3; // of a plane
  static constexpr int64_t taskTiles = 8;  // where the team shares a strip

  template <typename Transform, typename Element>
  void transformTiles(const Images &images, const Element *from, const Strip &strip, int64_t slice,
                      int64_t begin, int64_t end, float *to) const;
  void transformSlice(const Strip &strip, const Step &step, int64_t i, int64_t begin, int64_t end,
                      const Operands &operands, const Matrices &matrices) const;
  void transformWeight(const Bundle &bundle, int64_t task, const void *weight, float *to) const;
  void transformWeights(const Bundle &bundle, const Operands &operands, float *to) const;
  template <typename Element>
  void writeGroup(const Strip &strip, const Panel &panel, int64_t slice, int64_t group,
                  const float *products, const float *bias, Element *to) const;
  void multiplyGroup(const Strip &strip, const Bundle &bundle, const Panel &panel, int64_t slice,
                     int64_t group, const Operands &operands, const Matrices &matrices) const;
  void addGradient(const Bundle &bundle, int64_t task, const Step &step, bool isFirst,
                   const Matrices &matrices) const;
  void writeGradients(const Bundle &bundle, const float *sums, float *to) const;
  void writeGradient(const Bundle &bundle, int64_t task, const float *sums, float *to) const;

  void convolveOwnStrips(const Operands &operands, float *workspace) const;
  void differentiateOwnStrips(const Operands &operands, float *workspace) const;
  void shareStrips(const Operands &operands, float *workspace) const;
};

//===- Images to matrices ---------------------------------------------------------------------===//

/// Tiles of a slice. At each point a group's matrix has a row per tile.
template <typename Unit>
template <typename Transform, typename Element>
void WinogradRun<Unit>::transformTiles(const Images &images, const Element *from,
                                       const Strip &strip, int64_t slice, int64_t begin,
                                       int64_t end, float *to) const {
  constexpr bool isSource = std::is_same_v<Transform, tiles::Source>;
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
      auto put = [&](size_t i, size_t j, Vector value) DLC_INLINE {
        Unit::store(ofTile + (i * reach + j) * groupTiles * channels + c * block, value);
      };
      const Element *ofBlock = corner + c * images.blockStep;
      auto offset = [&](size_t i, size_t j) {
        return static_cast<int64_t>(i) * images.rowStep +
               static_cast<int64_t>(j) * images.columnStep;
      };
      if (isInside) {
        tiles::transformTile<Unit, Transform>(
            [&](size_t i, size_t j) DLC_INLINE { return Unit::load(ofBlock + offset(i, j)); }, put);
        continue;
      }
      tiles::transformTile<Unit, Transform>(
          [&](size_t i, size_t j) DLC_INLINE {
            int64_t y = firstRow + static_cast<int64_t>(i),
                    x = firstColumn + static_cast<int64_t>(j);
            bool exists = y >= 0 && y < images.rows && x >= 0 && x < images.columns;
            return exists ? Unit::load(ofBlock + offset(i, j)) : Unit::zero();
          },
          put);
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
                       float *to) {
    auto transformFrom = [&](const auto *elements) {
      transformTiles<decltype(kind)>(images, elements, strip, slice, begin, end, to);
    };
    if constexpr (Unit::readsBF16)
      if (images.dtype == DType::BF16)
        return transformFrom(static_cast<const uint16_t *>(from));
    transformFrom(static_cast<const float *>(from));
  };
  if (i < step.newSlices)
    transform(tiles::Source(), source, operands.source, step.firstNewSlice + i,
              matrices.source + slotOf(step.firstNewSlice + i) * sliceElements(source));
  else
    transform(tiles::ResultGradient(), result, operands.result,
              step.firstSlice + i - step.newSlices,
              matrices.result + (i - step.newSlices) * sliceElements(result));
}

//===- The weight -----------------------------------------------------------------------------===//

/// One block of channels by channels of one plane of the window. A panel's matrix of a plane and
/// point has a row per channel of the source.
template <typename Unit>
void WinogradRun<Unit>::transformWeight(const Bundle &bundle, int64_t task, const void *weight,
                                        float *to) const {
  bool isGradient = op == KernelOp::ConvGradData;
  int64_t plane = task % windowDepth;
  int64_t s = task / windowDepth % source.blocks;
  int64_t r = bundle.firstBlock + task / windowDepth / source.blocks;
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
  auto panel =
      std::ranges::find_if(panels, [&](const Panel &it) { return r < it.firstBlock + it.vectors; });
  int64_t lanes = panel->vectors * block;
  float *ofPanel = to + plane * planeElements() +
                   pointCount * source.channels() * (panel->firstBlock - bundle.firstBlock) * block;
  for (int64_t i = 0; i < block; ++i) {
    float *ofRow = ofPanel + (s * block + i) * lanes + (r - panel->firstBlock) * block;
    auto put = [&](size_t y, size_t x, Vector value) DLC_INLINE {
      Unit::store(ofRow + (y * reach + x) * source.channels() * lanes, value);
    };
    auto tap = [&](size_t y, size_t x) { return taps + (y * 3 + x) * block * block; };
    // Lanes are the result's channels; those of a data gradient are rows of the block.
    if (isGradient)
      tiles::transformTile<Unit, tiles::Window>(
          [&](size_t y, size_t x) DLC_INLINE { return Unit::loadColumn(tap(2 - y, 2 - x) + i); },
          put);
    else
      tiles::transformTile<Unit, tiles::Window>(
          [&](size_t y, size_t x) DLC_INLINE { return Unit::load(tap(y, x) + i * block); }, put);
  }
}

template <typename Unit>
void WinogradRun<Unit>::transformWeights(const Bundle &bundle, const Operands &operands,
                                         float *to) const {
  parallelFor(windowDepth * source.blocks * bundle.blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task)
      transformWeight(bundle, task, operands.weight, to);
  });
}

//===- Products to images ---------------------------------------------------------------------===//

template <typename Unit>
template <typename Element>
void WinogradRun<Unit>::writeGroup(const Strip &strip, const Panel &panel, int64_t slice,
                                   int64_t group, const float *products, const float *bias,
                                   Element *images) const {
  int64_t lanes = panel.vectors * block;
  int64_t tiles = std::min(groupTiles, strip.tiles - group * groupTiles);
  for (int64_t v = 0; v < panel.vectors; ++v) {
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
              DLC_INLINE { return Unit::load(from + (i * reach + j) * groupTiles * lanes); },
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
void WinogradRun<Unit>::multiplyGroup(const Strip &strip, const Bundle &bundle, const Panel &panel,
                                      int64_t slice, int64_t group, const Operands &operands,
                                      const Matrices &matrices) const {
  alignas(64) float products[pointCount * groupTiles * Unit::mostVectors * block];
  int64_t channels = source.channels(), lanes = panel.vectors * block;
  int64_t tiles = std::min(groupTiles, strip.tiles - group * groupTiles);
  const float *ofGroup = matrices.source + group * groupTiles * pointCount * channels;
  const float *ofPanel =
      matrices.weight + pointCount * channels * (panel.firstBlock - bundle.firstBlock) * block;
  for (int64_t point = 0; point < pointCount; ++point)
    for (int64_t tile = 0; tile < tiles;) {
      int64_t rows = std::min(Unit::mostRows(panel.vectors), tiles - tile);
      registerProduct<Unit>(rows, panel.vectors, false)(
          ofGroup + (point * groupTiles + tile) * channels, ofPanel + point * channels * lanes,
          products + (point * groupTiles + tile) * lanes, parts[static_cast<size_t>(slice)],
          {.aRow = channels, .aStep = 1, .bStep = lanes, .cRow = lanes}, false);
      tile += rows;
    }
  auto writeTo = [&](auto *images) {
    writeGroup(strip, panel, slice, group, products, operands.bias, images);
  };
  if constexpr (Unit::readsBF16)
    if (result.dtype == DType::BF16)
      return writeTo(static_cast<uint16_t *>(operands.result));
  writeTo(static_cast<float *>(operands.result));
}

//===- Filter gradients -----------------------------------------------------------------------===//

/// The sums of a plane, panel and point are a matrix with a row per channel of the source.
template <typename Unit>
void WinogradRun<Unit>::addGradient(const Bundle &bundle, int64_t task, const Step &step,
                                    bool isFirst, const Matrices &matrices) const {
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
    int64_t rows = std::min(Unit::mostRows(panel.vectors), channels - channel);
    registerProduct<Unit>(rows, panel.vectors, true)(
        ofSource + channel, ofResult, to + channel * lanes, ofPlane,
        {.aRow = 1, .aStep = channels, .bStep = result.channels(), .cRow = lanes}, !isFirst);
    channel += rows;
  }
}

template <typename Unit>
void WinogradRun<Unit>::writeGradient(const Bundle &bundle, int64_t task, const float *sums,
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
    tiles::transformTile<Unit, tiles::WindowGradient>(
        [&](size_t y, size_t x) DLC_INLINE {
          const float *first = from + (y * reach + x) * source.channels() * lanes;
          Vector sum = Unit::load(first);
          for (int64_t share = 1; share < shares; ++share)
            sum += Unit::load(first + share * ofShare);
          return sum;
        },
        [&](size_t y, size_t x, Vector value)
            DLC_INLINE { Unit::store(ofBlock + (y * 3 + x) * block * block + i * block, value); });
  }
}

template <typename Unit>
void WinogradRun<Unit>::writeGradients(const Bundle &bundle, const float *sums, float *to) const {
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

template <typename Unit>
void WinogradRun<Unit>::convolveOwnStrips(const Operands &operands, float *workspace) const {
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

template <typename Unit>
void WinogradRun<Unit>::differentiateOwnStrips(const Operands &operands, float *workspace) const {
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

template <typename Unit>
void WinogradRun<Unit>::shareStrips(const Operands &operands, float *workspace) const {
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
  if (places == 0)
    shareStrips(operands, workspace);
  else if (isOfFilter())
    differentiateOwnStrips(operands, workspace);
  else
    convolveOwnStrips(operands, workspace);
}

} // namespace dlc::rt
