// Anonymous memory for arenas: aligned to huge pages, prefaulted in parallel by the team that will
// use it. First touch inside a step would cost ten times the touch itself.
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

  std::span<std::byte> bytes() const { return usable; }

private:
  std::span<std::byte> mapped; // larger than `usable`, for alignment
  std::span<std::byte> usable;
};

} // namespace dlc::rt
