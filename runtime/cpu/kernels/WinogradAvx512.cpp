// Winograd by the instructions of Avx512. What the pragma is not for is included before it.
#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/kernels/VectorUnits.h"
#include "runtime/cpu/kernels/WinogradPlan.h"
#include "runtime/cpu/kernels/WinogradUnits.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#pragma clang attribute push(__attribute__((target("avx512f,avx512bw"))), apply_to = function)
#include "runtime/cpu/kernels/WinogradRun.h"
#pragma clang attribute pop

std::unique_ptr<const dlc::rt::WinogradPlan>
dlc::rt::winograd::makeAvx512(const KernelRequest &request) {
  return std::make_unique<const WinogradRun<Avx512>>(request);
}
