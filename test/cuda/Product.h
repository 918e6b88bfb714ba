// A dense layer's product by plain loops, in the place of cuBLASLt.
#pragma once

#include "runtime/cuda/plans/CudaPlan.h"

#include <cstddef>
#include <span>

namespace dlc::rt::test {

/// Operands a, b (b, a if they are swapped), bias if there is one, c; sums in f32. Throws
/// Error(Artifact) if one is too small.
void multiply(const ProductPlan &plan, std::span<const std::span<std::byte>> operands);

} // namespace dlc::rt::test
