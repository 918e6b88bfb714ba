// Winograd's code by the instructions that it is for.
#pragma once

#include "runtime/cpu/kernels/WinogradPlan.h"

#include <memory>

namespace dlc::rt::winograd {

// Only where the processor has the instructions, and of a request that the plan takes.
std::unique_ptr<const WinogradPlan> makeAvx512(const KernelRequest &request);
std::unique_ptr<const WinogradPlan> makeAvx2(const KernelRequest &request);

} // namespace dlc::rt::winograd
