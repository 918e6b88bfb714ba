#include "runtime/cpu/CpuMemory.h"

#include "runtime/artifact/Error.h"
#include "runtime/core/Pages.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <sys/mman.h>
#include <utility>

namespace dlc::rt {
namespace {

constexpr uint64_t unknown = std::numeric_limits<uint64_t>::max();

uint64_t numberIn(const char *path) {
  uint64_t number = 0;
  return std::ifstream(path) >> number ? number : unknown;
}

uint64_t entryIn(const char *path, const std::string &wanted) {
  std::ifstream file(path);
  std::string key, rest;
  for (uint64_t number; file >> key >> number; std::getline(file, rest))
    if (key == wanted)
      return number;
  return unknown;
}

// What may be touched before the kernel starts to kill: the machine's free memory, or the rest of
// the control group's share, of which file caches can be had back.
uint64_t availableBytes() {
  uint64_t kibibytes = entryIn("/proc/meminfo", "MemAvailable:");
  uint64_t machine = kibibytes == unknown ? unknown : kibibytes << 10;
  uint64_t limit = numberIn("/sys/fs/cgroup/memory.max"); // the word "max" if there is none
  uint64_t used = numberIn("/sys/fs/cgroup/memory.current");
  uint64_t cache = entryIn("/sys/fs/cgroup/memory.stat", "inactive_file");
  if (limit == unknown || used == unknown || cache > used)
    return machine;
  return std::min(machine, limit - std::min(limit, used - cache));
}

} // namespace

CpuMemory::CpuMemory(size_t bytes) {
  if (bytes == 0)
    return;
  auto refuse = [&](const std::string &reason) {
    throw Error(ErrorCode::Runtime, "cannot allocate " + std::to_string(bytes >> 20) +
                                        " MiB of memory: " + reason +
                                        "; compile with a smaller batch");
  };
  if (uint64_t available = availableBytes(); bytes > available)
    refuse("only " + std::to_string(available >> 20) + " MiB are free");
  std::byte *start = mapPages(bytes);
  if (!start)
    refuse(std::strerror(errno));
  mapped = {start, bytes};
  prefault(mapped);
}

CpuMemory::CpuMemory(CpuMemory &&other) noexcept : mapped(std::exchange(other.mapped, {})) {}

CpuMemory::~CpuMemory() {
  if (!mapped.empty())
    munmap(mapped.data(), mapped.size());
}

} // namespace dlc::rt
