#include "runtime/artifact/Occupancy.h"

#include <algorithm>
#include <iterator>

namespace dlc::rt {
namespace {

/// By CUDA's programming guide, "Technical Specifications per Compute Capability".
struct Multiprocessor {
  unsigned architecture, threads, blocks, sharedBytes;
};
constexpr Multiprocessor multiprocessors[] = {
    {80, 2048, 32, 164 * 1024},  {86, 1536, 16, 100 * 1024},  {87, 1536, 16, 164 * 1024},
    {89, 1536, 24, 100 * 1024},  {90, 2048, 32, 228 * 1024},  {100, 2048, 32, 228 * 1024},
    {103, 2048, 32, 228 * 1024}, {120, 1536, 24, 100 * 1024}, {121, 1536, 24, 100 * 1024}};

// Of all of them: each of four schedulers has a quarter of the registers, warps get them in lots,
// and the system takes some shared memory of each block.
constexpr unsigned warpSize = 32, schedulers = 4, registersOfScheduler = 16384, registerLot = 256,
                   reservedSharedBytes = 1024, sharedLot = 128;

constexpr unsigned roundUp(unsigned value, unsigned lot) { return (value + lot - 1) / lot * lot; }

} // namespace

std::optional<double> occupancy(unsigned architecture, const BlockNeeds &block) {
  const auto *known =
      std::ranges::find(multiprocessors, architecture, &Multiprocessor::architecture);
  if (known == std::end(multiprocessors) || block.registers == 0 || block.threads == 0)
    return std::nullopt;
  unsigned warps = roundUp(block.threads, warpSize) / warpSize;
  unsigned ofWarp = roundUp(block.registers * warpSize, registerLot);
  unsigned byRegisters = registersOfScheduler / ofWarp * schedulers / warps;
  unsigned byShared =
      known->sharedBytes / roundUp(block.sharedBytes + reservedSharedBytes, sharedLot);
  unsigned byThreads = known->threads / (warps * warpSize);
  unsigned blocks = std::min({byRegisters, byShared, byThreads, known->blocks});
  return static_cast<double>(blocks * warps * warpSize) / known->threads;
}

} // namespace dlc::rt
