// Private memory for arenas: on huge pages where the kernel grants them, prefaulted in parallel by
// the team that will use it, and refused before the machine runs out of it.
#pragma once

#include <cstddef>
#include <span>

namespace dlc::rt {

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
