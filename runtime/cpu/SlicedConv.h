// A convolution of volumes as 2-D convolutions of their slices, for which the library has Winograd.
//
// A slice of the result is the 2-D convolution of the slices that the window reaches in depth,
// stacked as channels: with a window of 3 x 3 x 3 these are 3C channels and the weight is
// [O, 3C, 3, 3]. So is a slice of the data gradient, of the result's slices and the window's planes
// in opposite order; a filter gradient is the sum of those of the slices. In blocked layouts a
// block of channels of one slice is one piece of memory, and stacking copies whole pieces. Some
// slices make a bundle, which is one call of the library, so that its matrices are large and its
// operands still lie in a cache.
#pragma once

#include "runtime/core/KernelPlanner.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace dlc::rt {

class SlicedConv {
public:
  /// Nothing unless the request is a convolution of volumes in f32, or a gradient of one, whose
  /// window is dense in depth and steps by one.
  static std::optional<SlicedConv> of(const KernelRequest &volumes);

  /// One bundle's 2-D convolution.
  const KernelRequest &slice() const { return request; }
  /// Layouts of a volume and of its slices; nothing where a slice's channels have no pieces.
  static std::optional<Layout> sliceLayout(const Layout &volume);
  static std::optional<Layout> volumeLayout(const Layout &slice);
  /// Fixes the layouts of slices, one per operand; false if what is stacked has no whole pieces.
  bool setLayouts(std::span<const Layout> layouts);

  /// Bytes of a bundle's operands, in a workspace ahead of the library's own.
  uint64_t workspaceBytes() const;
  /// Bytes that one run copies, a filter gradient's sums not counted.
  uint64_t copiedBytes() const;
  /// Buffers of one bundle's operands, and last the library's own workspace, for those of volumes.
  std::vector<void *> sliceBuffers(std::span<void *const> volumes) const;
  /// Runs all bundles on the calling thread's team; `convolve` is the library's call.
  void run(std::span<void *const> volumes, std::span<void *const> ofSlices,
           const std::function<void()> &convolve) const;

private:
  /// An operand in pieces: those of a slice, or of a plane of the window, and where they lie.
  struct Pieces {
    size_t operand = 0;
    int64_t count = 0; // of a slice's blocks of channels, or of a plane's
    int64_t bytes = 0; // of each
    int64_t depth = 0; // slices of a volume, planes of the window
  };

  struct Buffers {
    std::span<void *const> volumes, slices;
  };

  bool isFilterGradient() const { return request.op == KernelOp::ConvGradFilter; }
  /// Of the weight: the planes of the window lie along it.
  size_t stackedDim() const { return request.op == KernelOp::ConvGradData ? 0 : 1; }
  void dropDepth();
  uint64_t bundleBytes(const Pieces &pieces, int64_t copies) const;
  void copyWeight(const Buffers &buffers) const;
  void addWeight(int64_t piece, bool isFirst, const Buffers &buffers) const;
  void stack(int64_t task, int64_t bundle, const Buffers &buffers) const;
  void moveSingle(int64_t task, int64_t bundle, const Buffers &buffers) const;
  void exchange(int64_t bundle, const Buffers &buffers) const;
  int64_t stackedWeight(int64_t piece) const;

  KernelRequest request; // of one bundle
  Pieces stacked;        // x, or dy of a data gradient
  Pieces single;         // y, dx, or dy of a filter gradient
  Pieces weight;
  int64_t weightRows = 0, weightColumns = 0; // blocks of its first two dimensions
  int64_t first = 0;                         // slice that a window begins with, for slice 0
  int64_t slices = 0;                        // of all volumes
  int64_t bundleSize = 0, bundles = 0;       // the last one need not be full
};

} // namespace dlc::rt
