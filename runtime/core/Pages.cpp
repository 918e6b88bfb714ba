#include "runtime/core/Pages.h"

#include "runtime/artifact/Align.h"
#include "runtime/core/ParallelFor.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/mman.h>

namespace dlc::rt {

std::byte *mapPages(size_t bytes) {
  // More than needed is mapped and the ends are given back, so that the rest begins where it
  // should.
  size_t spare = bytes >= hugePageBytes ? hugePageBytes : 0;
  size_t page = 4096, size = alignUp(std::max<size_t>(bytes, 1), page);
  void *mapped =
      mmap(nullptr, size + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return nullptr;
  auto *start = static_cast<std::byte *>(mapped);
  if (spare == 0)
    return start;
  size_t skip = (hugePageBytes - reinterpret_cast<uintptr_t>(start) % hugePageBytes) % spare;
  if (skip > 0)
    munmap(start, skip);
  if (skip < spare)
    munmap(start + skip + size, spare - skip);
  madvise(start + skip, size, MADV_HUGEPAGE); // refused where huge pages are off: only slower
  return start + skip;
}

void prefault(std::span<std::byte> zeroed) {
  constexpr int64_t page = 4096;
  parallelFor(static_cast<int64_t>(zeroed.size()), static_cast<int64_t>(hugePageBytes),
              [&](int64_t begin, int64_t end) {
                for (int64_t at = begin; at < end; at += page)
                  zeroed[static_cast<size_t>(at)] = std::byte{0};
              });
}

void countHugePages(std::span<const DeviceSpan> spans, std::span<uint64_t> bytes) {
  std::ranges::fill(bytes, 0);
  // A line "begin-end ..." opens each mapping; "Key: N kB" follow.
  std::ifstream file("/proc/self/smaps");
  uintptr_t begin = 0, end = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    uint64_t kibibytes = 0;
    words >> key;
    if (!key.ends_with(":")) {
      char dash = 0;
      std::istringstream range(key);
      range >> std::hex >> begin >> dash >> end;
    } else if ((key == "AnonHugePages:" || key == "ShmemPmdMapped:") && words >> kibibytes) {
      uint64_t huge = kibibytes << 10; // of a mapping that may hold several spans
      for (size_t i = 0; i < spans.size(); ++i) {
        uintptr_t from = std::max(spans[i].address, begin);
        uintptr_t to = std::min(spans[i].address + spans[i].bytes, end);
        uint64_t part = from < to ? std::min<uint64_t>(huge, to - from) : 0;
        bytes[i] += part;
        huge -= part;
      }
    }
  }
}

ResidentBytes residentBytes() {
  ResidentBytes resident;
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    uint64_t kibibytes = 0;
    if (words >> key >> kibibytes && key == "VmRSS:")
      resident.now = kibibytes << 10;
    else if (key == "VmHWM:")
      resident.peak = kibibytes << 10;
  }
  return resident;
}

} // namespace dlc::rt
