// How fast a device moves memory and computes, as measured while it runs.
//
// Rates count what crosses the bus: where stores fetch the line that they overwrite, a copy moves
// three bytes per byte copied, else two; an update in place two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dlc::rt {

/// Bytes per nanosecond, which is GB/s.
struct MemoryRates {
  double read = 0, copy = 0, update = 0;
};

/// A cache, or memory itself.
struct MemoryLevel {
  std::string name; // "L2"
  MemoryRates rates;
  uint64_t bytes = 0; // that a cache keeps for whoever computes
};

struct MachineSpeed {
  std::vector<MemoryLevel> memory; // caches from the nearest on, then memory itself
  double gigaflops = 0;            // f32 multiply-adds; 0: not measured
  bool fetchesLines = true;        // that stores overwrite
  bool sharesWorkspace = false;    // the library's kernels: each uses what it likes of it

  /// Nanoseconds to read `read` bytes of which `written` <= `read` are changed or replaced.
  double nanoseconds(size_t level, double read, double written) const {
    const MemoryRates &rates = memory[level].rates;
    return (read - written) / rates.read + 2 * written / rates.update;
  }
};

} // namespace dlc::rt
