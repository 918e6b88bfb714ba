// How a convolution by Winograd's F(4 x 4, 3 x 3) is cut into pieces: a plan that the request alone
// determines, whatever the team. What runs it, for some instructions, is in WinogradRun.h.
#pragma once

#include "runtime/core/CeilDiv.h"
#include "runtime/cpu/kernels/OwnKernel.h"
#include "runtime/cpu/kernels/ProductPart.h"

#include <algorithm>
#include <span>
#include <vector>

namespace dlc::rt {

class WinogradPlan : public OwnKernel {
public:
  uint64_t workspaceBytes() const override;
  uint64_t flops() const override;

protected:
  static constexpr int64_t tileSide = 4, tileReach = 6, pointCount = tileReach * tileReach;
  /// Tiles whose products are computed together: rows of some register products, whose results stay
  /// in the second-level cache.
  static constexpr int64_t groupTiles = 24;
  /// Rows of a matrix of a group, or of one with a row per channel: one more than are used, so that
  /// those of neighbouring points lie in different sets of the first-level cache.
  static constexpr int64_t groupRows = groupTiles + 1;
  static int64_t paddedRows(int64_t channels) { return channels + 1; }

  /// Of a request that is computed (WinogradRequest.h) and whose layouts are given: channels lie in
  /// blocks of one vector, and the sums of at most so many are in registers together.
  WinogradPlan(const KernelRequest &request, int64_t block, int64_t mostVectors);

  /// Blocks of channels that follow each other.
  struct Channels {
    int64_t firstBlock, blocks;
    int64_t number; // of these parts
  };
  /// Images or gradients of images: extents, and steps between neighbours in elements. Their
  /// matrices lie by chunk of channels, slot of a slice, group, point, tile of the group and
  /// channel of the chunk.
  struct Images {
    DType dtype = DType::F32;
    int64_t volumes = 0, depth = 0, rows = 0, columns = 0, blocks = 0;
    int64_t volumeStep = 0, depthStep = 0, rowStep = 0, columnStep = 0, blockStep = 0;
    int64_t block = 0; // channels that lie together
    std::vector<Channels> chunks = {};
    int64_t slots = 1;
    int64_t channels() const { return blocks * block; }
    static Images of(const OperandType &operand, int64_t block);
  };
  /// Panels whose weights are in memory together.
  struct Bundle {
    int64_t firstPanel, panels, firstBlock, blocks;
  };
  /// Tiles at the same places of some slices.
  struct Strip {
    int64_t volume, firstTile, tiles, firstSlice, slices;
    int64_t firstStep; // of all strips'
  };
  /// Slices of a strip that are computed at one time.
  struct Step {
    int64_t firstSlice, slices;
    int64_t firstNewSlice, newSlices; // of the source; those ahead are there from the step before
    int64_t number;                   // of all strips'
  };
  using Parts = std::vector<ProductPart>;
  /// Parts of the workspace: the weight's or the sums', those of a strip, and where a thread has
  /// what it alone computes of a strip that the team shares.
  struct Matrices {
    float *weight = nullptr, *source = nullptr, *result = nullptr, *own = nullptr;
  };
  struct Operands {
    const void *source = nullptr, *weight = nullptr;
    const float *bias = nullptr;
    void *result = nullptr; // of a filter gradient what `gradient` is computed of
    float *gradient = nullptr;
  };

  void cut();
  bool planOwnStrips();
  void planSharedStrips();
  void planBundles(int64_t tasksOfPanel);
  static std::vector<Channels> inChunksOf(int64_t most, int64_t blocks);
  void cutStrips(int64_t stripsOfSlice, int64_t stripSlices);
  Parts partsOfSlice(int64_t slice) const;
  Parts partsOfPlane(const Strip &strip, const Step &step, int64_t plane) const;
  void planParts();
  bool isOfFilter() const { return op == KernelOp::ConvGradFilter; }
  int64_t tilesOfSlice() const { return tileRows * tileColumns; }
  int64_t groupsOf(const Strip &strip) const { return ceilDiv(strip.tiles, groupTiles); }
  int64_t runsOf(const Strip &strip, const Step &step) const {
    return ceilDiv(step.slices * groupsOf(strip), runGroups);
  }
  int64_t rowsOfSlice() const { return ceilDiv(stripTiles, groupTiles) * groupRows * pointCount; }
  int64_t chunkOffset(const Images &images, const Channels &chunk) const {
    return chunk.firstBlock * block * images.slots * rowsOfSlice();
  }
  int64_t weightRows() const;
  int64_t weightElements() const;
  int64_t stripElements() const;
  int64_t ownElements() const;
  int64_t slotOf(int64_t slice) const { return slice % source.slots; }
  /// Strips that are computed at one time.
  int64_t places() const { return isShared ? 1 : threads; }
  bool isOneStep() const { return strips.size() == 1 && stepSlices == result.depth; }
  Matrices matricesOf(float *workspace, int64_t share, int64_t thread) const;
  template <typename Body> void forSteps(const Strip &strip, Body &&body) const;

  int64_t block, mostVectors;
  KernelOp op;
  bool hasBias, hasRelu, isWeightNarrow = false;
  Images source, result; // dy and dx of a data gradient, x and dy of a filter gradient
  int64_t windowDepth = 1;
  int64_t paddingDepth = 0, paddingRow = 0, paddingColumn = 0;
  int64_t stacked = 1; // images whose rows of tiles follow each other as those of one
  int64_t imageTileRows = 0, tileRows = 0, tileColumns = 0; // tileRows: of the stack
  int64_t threads;                                          // of the team, at most
  bool isShared = false; // each strip, by the team; else each thread has its own
  int64_t shares = 1;    // of a filter gradient's strips, each with sums of its own
  int64_t stripTiles = 0, stepSlices = 1; // most of a strip and of a step
  std::vector<Channels> panels;           // of the result, whose sums are in registers together
  int64_t runGroups = 1;       // of a shared strip, whose products are summed together, at most
  std::vector<Bundle> bundles; // one unless there is one strip; none if runs transform weights
  int64_t weightBlocks = 0;    // of the result's, most whose weights or sums are in memory together
  std::vector<Strip> strips;
  /// What is summed over, in rows of the matrices: by slice of the result, or for a filter gradient
  /// by step and plane.
  std::vector<Parts> parts;
};

template <typename Body> void WinogradPlan::forSteps(const Strip &strip, Body &&body) const {
  int64_t end = strip.firstSlice + strip.slices, number = strip.firstStep, done = 0;
  for (int64_t slice = strip.firstSlice; slice < end; slice += stepSlices) {
    int64_t slices = std::min(stepSlices, end - slice);
    int64_t first = std::max(done, slice - paddingDepth);
    done = std::clamp(slice + slices - paddingDepth + windowDepth - 1, first,
                      std::max(first, source.depth));
    body(Step{slice, slices, first, done - first, number++});
  }
}

} // namespace dlc::rt
