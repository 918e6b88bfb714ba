// The arithmetic of an all-reduce: one range of a slice, summed over ranks in rank order in f32.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace dlc::rt {

/// One rank's part of a slice: f32 in memory, or bf16 as it came over the wire. One is null.
struct Contribution {
  const float *f32 = nullptr;
  const uint16_t *bf16 = nullptr;
};

/// Adds elements [begin, end) of the contributions, in their order, and writes the sum to the same
/// range of every destination, which may be one of the contributions. With wire BF16 each f32
/// contribution and the sum are rounded to bf16.
void sumContributions(std::span<const Contribution> contributions,
                      std::span<float *const> destinations, size_t begin, size_t end,
                      artifact::DType wire);

void packBf16(std::span<const float> from, uint16_t *to);
void unpackBf16(std::span<const uint16_t> from, float *to);

} // namespace dlc::rt
