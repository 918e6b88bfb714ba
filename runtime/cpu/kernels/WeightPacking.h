// Weights of convolutions in f32, in blocks or as matrices, packed as kernels in bf16 multiply
// them: in pairs.
//
// bf16 instructions multiply two neighbours of a lane at once, so weights lie in pairs along the
// dimension that is summed over: input channels in the forward pass, output channels in the data
// gradient. The variable lies in blocks of 16 x 16, or in rows if a window is one element, and
// every step packs each weight twice. The library does so in scalar code, at a third of memory's
// bandwidth.
#pragma once

#include "runtime/core/KernelPlanner.h"

#include <optional>
#include <vector>

namespace dlc::rt {

class WeightPacking {
public:
  /// The implementation's name in plans.
  static constexpr const char *name = "packing:avx512_core_bf16";

  /// Nothing unless the request reorders whole blocks of 16 x 16 in f32, or a row-major matrix of
  /// such, into pairs in bf16, its layouts are given, and this processor has the instructions.
  static std::optional<WeightPacking> of(const KernelRequest &request);

  static uint64_t workspaceBytes() { return 0; }
  /// Rounds to nearest even, and what lies beyond the extents to zero. Denormals become zero. On
  /// the calling thread's team.
  void run(const void *from, void *to) const;

private:
  /// Where the blocks of one of the two blocked dimensions begin, in elements. An address is a sum
  /// over dimensions.
  struct Blocks {
    std::vector<int64_t> from; // of 16 elements
    std::vector<int64_t> to;   // of a pair, or of 16 elements
    int64_t count() const { return static_cast<int64_t>(from.size()); }
  };

  WeightPacking() = default;
  void packBlock(int64_t task, const float *from, uint16_t *to) const;

  int64_t rowStride = 0;  // of a block in the variable, in elements
  bool pairsRows = false; // else columns, which are next to each other in the variable
  Blocks paired, lined;   // by pairs, and by the lines of 16 of them
  std::vector<int64_t> fromWindow, toWindow;
};

} // namespace dlc::rt
