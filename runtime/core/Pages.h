// Pages of this process: private memory that the kernel may back by huge pages, and what it made of
// it.
//
// A first touch inside a step costs ten times the touch itself, and on small pages every kernel
// pays for the walk through the page table: so arenas are mapped and touched here, once.
#pragma once

#include "runtime/core/DeviceSpan.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace dlc::rt {

inline constexpr size_t hugePageBytes = size_t{2} << 20;

/// Zeroed private memory, which begins on a huge page if it could fill one; null with errno set if
/// the kernel refuses. Given back by munmap(start, bytes).
std::byte *mapPages(size_t bytes);
/// Touches every page by the calling thread's team. The memory must be zero.
void prefault(std::span<std::byte> zeroed);

/// How many bytes of each of these spans of this process lie on huge pages, as the kernel tells; 0
/// where it does not.
void countHugePages(std::span<const DeviceSpan> spans, std::span<uint64_t> bytes);

struct ResidentBytes {
  uint64_t now = 0;
  uint64_t peak = 0;
};
/// Memory of this process, shared pages included; zeros where the kernel does not tell.
ResidentBytes residentBytes();

} // namespace dlc::rt
