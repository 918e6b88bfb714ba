// Which requests for a convolution Winograd's transforms compute, and where their operands are.
#pragma once

#include "runtime/core/KernelPlanner.h"
#include "runtime/cpu/kernels/RegisterProduct.h"

namespace dlc::rt::winograd {

/// Channels that lie together.
constexpr int64_t block = vectorLanes;

/// What is transformed: images, or gradients of images.
constexpr size_t sourceOperand() { return 0; }
/// What its windows are multiplied to; of a filter gradient what they are multiplied with.
size_t resultOperand(const KernelRequest &request);
/// Blocks of channels by channels.
Layout weightLayout(size_t rank);
/// Whether a request can be computed on this processor, but for layouts.
bool isComputed(const KernelRequest &request);

} // namespace dlc::rt::winograd
