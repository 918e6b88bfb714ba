// How fast a team of threads moves memory and computes on this machine, as measured while it runs.
//
// Rates count what crosses the bus: a copy's store reads the line that it overwrites, so it moves
// three bytes per byte copied, an update in place two.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dlc::rt {

/// Bytes per nanosecond, which is GB/s.
struct MemoryRates {
  double read = 0, copy = 0, update = 0;
};

enum class MemoryLevel : uint8_t { L2, L3, Dram };

struct MachineSpeed {
  std::array<MemoryRates, 3> memory; // by MemoryLevel
  uint64_t l2Bytes = 0;              // of all cores of the team
  uint64_t l3Bytes = 0;              // as measured: what the team can keep in it
  double gigaflops = 0;              // of the team, f32 multiply-adds

  const MemoryRates &at(MemoryLevel level) const { return memory[static_cast<size_t>(level)]; }
  /// Nanoseconds to read `read` bytes of which `written` <= `read` are changed or replaced.
  double nanoseconds(MemoryLevel level, double read, double written) const {
    return (read - written) / at(level).read + 2 * written / at(level).update;
  }
};

} // namespace dlc::rt
