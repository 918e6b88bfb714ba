#include "test/asynchronous/HiddenMemory.h"

#include "runtime/artifact/Error.h"

#include <iterator>
#include <sys/mman.h>

namespace dlc::rt::test {

/// Also for empty memory: an address of its own.
static size_t rangeOf(DeviceSpan memory) { return memory.bytes + 4096; }

DeviceSpan HiddenMemory::hide(DeviceSpan memory) {
  void *start =
      mmap(nullptr, rangeOf(memory), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED)
    throw Error(ErrorCode::Runtime, "no addresses left to hide memory behind");
  memories[reinterpret_cast<uintptr_t>(start)] = memory;
  return {reinterpret_cast<uintptr_t>(start), memory.bytes};
}

DeviceSpan HiddenMemory::reveal(DeviceSpan hidden) const {
  auto above = memories.upper_bound(hidden.address);
  if (above != memories.begin()) {
    const auto &[start, memory] = *std::prev(above);
    if (DeviceSpan{start, memory.bytes}.contains(hidden))
      return memory.subspan(hidden.address - start, hidden.bytes);
  }
  throw Error(ErrorCode::Runtime, "memory that is not this device's");
}

HiddenMemory::~HiddenMemory() {
  for (const auto &[start, memory] : memories)
    munmap(reinterpret_cast<void *>(start), rangeOf(memory));
}

} // namespace dlc::rt::test
