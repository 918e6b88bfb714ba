// Weights of convolutions in f32, in blocks or as matrices, packed as kernels multiply them: in
// lines of 16 of the channels that they compute.
//
// bf16 instructions multiply two neighbours of a lane at once, so weights lie in pairs along the
// dimension that is summed over: input channels in the forward pass, output channels in the data
// gradient. The variable lies in blocks of 16 x 16, or in rows if a window is one element, and
// every step packs each weight twice, in f32 once, for the data gradient. The library does so in
// scalar code, at a third of memory's bandwidth.
#pragma once

#include "runtime/cpu/kernels/OwnKernel.h"

#include <memory>
#include <string>
#include <vector>

namespace dlc::rt {

class WeightPacking final : public OwnKernel {
public:
  /// The implementation's name in plans, by what weights become.
  static const char *nameFor(DType packed);
  static bool isName(const std::string &implementation);

  /// Null unless the request reorders whole blocks of 16 x 16 in f32, or a row-major matrix of
  /// such, into lines of pairs in bf16 or, transposing them, of f32, its layouts are given, and
  /// this processor has the instructions.
  static std::unique_ptr<const WeightPacking> of(const KernelRequest &request);

  uint64_t workspaceBytes() const override { return 0; }
  uint64_t flops() const override { return 0; }
  /// Rounds to nearest even, and what lies beyond the extents to zero. Denormals become zero in
  /// bf16.
  void run(std::span<void *const> buffers) const override;

private:
  /// Where the blocks of one of the two blocked dimensions begin, in elements. An address is a sum
  /// over dimensions.
  struct Blocks {
    std::vector<int64_t> from; // of 16 elements
    std::vector<int64_t> to;   // of an element or a pair, or of 16 elements
    int64_t count() const { return static_cast<int64_t>(from.size()); }
  };

  WeightPacking() = default;
  /// Of a block: along the dimension that is summed over, along the other, and in the window.
  struct Place {
    int64_t block, line, window;
  };

  int64_t linesOfBlock() const; // what a block becomes
  int64_t blocks() const;
  int64_t lines() const;
  Place placeOf(int64_t task) const;
  void advance(Place &place) const;
  /// Null beyond the extents.
  const float *sourceOf(const Place &place, const float *from) const;
  void packBlock(const Place &place, const float *source, void *to) const;

  bool inPairs = false;
  int64_t rowStride = 0;  // of a block in the variable, in elements
  bool alongRows = false; // of lines or pairs; else columns, next to each other in the variable
  bool linesAreOuter = false;
  Blocks summed, lined; // of the dimension that is summed over, and of that of the lines
  std::vector<int64_t> fromWindow, toWindow;
};

} // namespace dlc::rt
