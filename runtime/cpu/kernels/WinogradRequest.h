// Which requests for a convolution Winograd's transforms compute, and where their operands are.
#pragma once

#include "runtime/core/KernelPlanner.h"

namespace dlc::rt::winograd {

/// What code for some instructions can take.
struct Abilities {
  int64_t block;  // channels that lie together
  bool readsBF16; // beside f32
};

/// What is transformed: images, or gradients of images.
constexpr size_t sourceOperand() { return 0; }
/// What its windows are multiplied to; of a filter gradient what they are multiplied with.
size_t resultOperand(const KernelRequest &request);
/// Blocks of channels by channels.
Layout weightLayout(size_t rank, int64_t block);
/// Whether a request can be computed, but for layouts.
bool isComputed(const KernelRequest &request, const Abilities &abilities);

} // namespace dlc::rt::winograd
