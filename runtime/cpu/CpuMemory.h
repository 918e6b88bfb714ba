// Private memory for arenas: on huge pages where the kernel grants them, prefaulted in parallel by
// the team that will use it, and refused before the machine runs out of it.
#pragma once

#include "runtime/core/DeviceSpan.h"

#include <cstddef>
#include <span>

namespace dlc::rt {

/// What this process has at a place of the CPU's memory.
inline std::span<std::byte> bytesAt(DeviceSpan memory) {
  return {reinterpret_cast<std::byte *>(memory.address), memory.bytes};
}

class CpuMemory {
public:
  /// Zeroed; throws Error(Runtime) if the machine has not as much.
  explicit CpuMemory(size_t bytes);
  ~CpuMemory();
  CpuMemory(CpuMemory &&other) noexcept;
  CpuMemory &operator=(CpuMemory &&) = delete;

  std::span<std::byte> bytes() const { return mapped; }

private:
  std::span<std::byte> mapped;
};

} // namespace dlc::rt
