// Winograd by the instructions of Avx2. What the pragma is not for is included before it.
#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/kernels/VectorUnits.h"
#include "runtime/cpu/kernels/WinogradPlan.h"
#include "runtime/cpu/kernels/WinogradUnits.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#include "runtime/cpu/kernels/WinogradRun.h"
#pragma clang attribute pop

std::unique_ptr<const dlc::rt::WinogradPlan>
dlc::rt::winograd::makeAvx2(const KernelRequest &request) {
  return std::make_unique<const WinogradRun<Avx2>>(request);
}
