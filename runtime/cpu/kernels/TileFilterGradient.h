// A convolution's filter gradient in bf16 by AMX's tiles (Tiles.h).
//
// For each element of the window the gradient is a product of matrices, dy transposed by what the
// window has of x, summed over the pixels of the result. Where x has few channels it is one for
// each line of the window, whose elements lie side by side in channels-last images. Tiles want
// neighbours of what is summed over side by side: of dy a row per channel with 32 pixels, of x a
// row per pair of pixels with 16 channels. So up to two thousand pixels at a time both are packed,
// wherever stride, dilation and padding find them, and sums of 32 by 32 channels stay in tiles over
// all these pixels. dy is packed once. x is packed for each element or line of the window or, where
// its pixels lie at fixed distances once images have margins between them, for a slice of the
// window at once; always between the products of what was packed before.
//
// Pixels are cut into shares that are summed apart, or what the sums are of into parts, so that
// each thread packs and multiplies alone. All sums are f32, in an order that the request fixes,
// whatever the team.
#pragma once

#include "runtime/cpu/kernels/OwnKernel.h"
#include "runtime/cpu/kernels/Tiles.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace dlc::rt {

class TileFilterGradient final : public OwnKernel {
public:
  /// Layouts of x, dy and the gradient in a family of activations: the gradient lies in blocks of
  /// 16 by 16 channels, or in rows if its window is one element and `inRows`; where x has no whole
  /// blocks of 16 channels, in lines of 16 of dy's. Nothing unless the request is for whole blocks
  /// of dy's channels in bf16 and the processor has tiles.
  static std::optional<std::vector<Layout>> layouts(const KernelRequest &request,
                                                    LayoutFamily family, bool inRows);
  /// Of a request whose layouts are given; null unless they are ones that layouts() gives.
  static std::unique_ptr<const TileFilterGradient> of(const KernelRequest &request);

  uint64_t workspaceBytes() const override;
  uint64_t flops() const override;
  void run(std::span<void *const> buffers) const override;

private:
  /// An element of the window, or a line: how far its first pixel of x is from where a pixel of dy
  /// is in x, where its part of the gradient begins, and its distance from its group's first.
  struct Tap {
    tiles::Triple from;
    int64_t gradient, distance = 0;
  };
  /// Taps for which x is packed together: one, or a slice of the window whose pixels lie at fixed
  /// distances, of which the first one's and how far the last is from it.
  struct Group {
    int64_t firstTap, taps, from = 0, span = 0;
  };
  /// A tile's part of a tap: 16 elements of x from one on, fewer at the end of a line, and where
  /// their part of the gradient is, from the tap's on.
  struct Column {
    int64_t element, elements, gradient;
  };
  /// What one thread computes at a time: pixels of the result, blocks of dy's channels, and chunks
  /// of two columns, those of one group of taps after those of another.
  struct Task {
    int64_t share, firstPixel, pixels, firstBlock, blocks, firstChunk, chunks;
  };
  /// One or two columns of the taps of a group.
  struct Chunk {
    int64_t group, column, columns;
  };
  class TaskRun;

  explicit TileFilterGradient(const KernelRequest &request);
  void groupTaps(const KernelRequest &request);
  void cut();
  int64_t blockCount() const { return static_cast<int64_t>(blocks.size()); }
  int64_t columnCount() const { return static_cast<int64_t>(columns.size()); }
  int64_t chunksOfGroup() const { return (columnCount() + 1) / 2; }
  int64_t pixelCount() const;
  int64_t sumElements() const;
  int64_t stepsOf(const Task &task) const;
  Chunk chunkOf(int64_t number) const;
  int64_t mostRows() const;
  /// That have memory of their own.
  int64_t workers() const { return std::min(threads, static_cast<int64_t>(tasks.size())); }
  uint64_t ownBytes() const;
  void writeTile(const float *sums, int64_t tap, int64_t column, int64_t ofDy,
                 float *gradient) const;
  void addShares(int64_t tile, std::span<void *const> buffers) const;

  tiles::Images x, dy;
  tiles::Grid grid;            // of dy's pixels
  std::vector<int64_t> blocks; // where each of dy's begins
  std::vector<Tap> taps;
  std::vector<Group> groups;
  std::optional<tiles::Triple> apart; // extents of images whose pixels lie at fixed distances
  int64_t parities = 1;               // of distances in a group
  std::vector<Column> columns;        // of each tap
  int64_t lineElements = 0;           // of x, in a line of the window; 0: taps are elements
  bool inRows = false;                // the gradient
  int64_t dyStep = 0;                 // of the gradient, from block to block
  int64_t threads;
  int64_t shares = 1, mostSteps = 0, mostBlocks = 0; // of a product, of a task
  bool keepsSums = false; // in the workspace, from some pixels to the next
  std::vector<Task> tasks;
};

} // namespace dlc::rt
