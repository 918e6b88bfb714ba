// A convolution in bf16 by AMX's tiles, and its data gradient.
//
// The result is a product of matrices, a row for each of its pixels and a column for each of its
// channels, summed over the elements of the window and the source's channels. Rows are gathered
// from the source, some hundreds of pixels at a time, wherever stride, dilation and padding find
// them; weights lie as tiles want them, in pairs of what is summed over (WeightPacking.h). Of a
// data gradient whose window steps, pixels that are equally far from a step have the same elements
// of the window: each such phase is a product of its own, of the elements that it has alone.
//
// Sums are f32, in an order that the request fixes, whatever the team.
#pragma once

#include "runtime/cpu/kernels/OwnKernel.h"
#include "runtime/cpu/kernels/Tiles.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace dlc::rt {

class TileConvolution final : public OwnKernel {
public:
  /// Layouts of the operands, images channels last. Nothing unless the request is for whole blocks
  /// of 16 channels in bf16 and the processor has tiles.
  static std::optional<std::vector<Layout>> layouts(const KernelRequest &request);
  /// Of a request whose layouts are given; null unless they are ones that layouts() gives.
  static std::unique_ptr<const TileConvolution> of(const KernelRequest &request);

  uint64_t workspaceBytes() const override;
  uint64_t flops() const override;
  void run(std::span<void *const> buffers) const override;

private:
  /// An element of the window, and how far its pixel of the source is from where a pixel of the
  /// result is in the source.
  struct Tap {
    int64_t number;
    tiles::Triple from;
  };
  /// Pixels of the result with the same taps.
  struct Phase {
    tiles::Grid grid;
    std::vector<Tap> taps;
  };
  /// What a thread computes at a time.
  struct Task {
    const Phase *phase;
    int64_t firstPixel, pixels, firstBlock, blocks; // of the result's channels
  };

  explicit TileConvolution(const KernelRequest &request);
  void addPhases(const KernelRequest &request, const std::vector<int64_t> &window);
  void cut();
  int64_t stepsOfTap() const;
  uint64_t ownBytes() const;
  bool isInPlace(const Task &task) const;
  void gather(const Task &task, const uint16_t *source, const tiles::Places &places,
              std::byte *rows) const;
  void runTask(const Task &task, std::span<void *const> buffers, int64_t thread) const;

  tiles::Images source, result;
  bool hasBias, hasRelu;
  std::vector<Phase> phases;
  int64_t taps = 0; // of the window
  int64_t threads;
  int64_t mostPixels = 0, mostSteps = 0; // of a task
  std::vector<Task> tasks;
};

} // namespace dlc::rt
