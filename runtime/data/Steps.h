// The steps of a data chain: normalize, flip, rotate90.
//
// A random step makes one draw for all members of its chain, from (seed, epoch, sample) alone.
// Immutable once statistics are set; may be used from any thread.
#pragma once

#include "runtime/artifact/artifact_generated.h"
#include "runtime/data/Sample.h"

#include <array>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace dlc::rt {

/// (x - mean) / (std + 1e-6) per sample.
struct NormalizePerImage {};

/// (x - mean) / (std + epsilon) per channel: given in the model, or measured over the training part
/// (`measured`), then kept with the weights.
struct NormalizeChannels {
  bool measured = false;
  std::vector<float> mean, deviation; // one entry, or one per channel
  float epsilon = 0;
};

/// Mirrors each spatial axis, or those that the letters of ZYX name, with probability 1/2.
struct Flip {
  std::string axes;
};

/// 0 to 3 quarter turns in the plane of the last two axes, equally likely.
struct Rotate90 {};

using DataStep = std::variant<NormalizePerImage, NormalizeChannels, Flip, Rotate90>;

/// Throws Error(Artifact) for a step that this runtime does not know.
DataStep makeStep(const artifact::CallT &call);

/// True for steps that only training applies.
bool isAugmentation(const DataStep &step);

/// True for steps that move elements and change none.
bool keepsValues(const DataStep &step);

/// Applies a step to the members of a chain. `draw` is 128 random bits.
void applyStep(const DataStep &step, std::span<Sample *const> members,
               const std::array<uint32_t, 4> &draw);

} // namespace dlc::rt
