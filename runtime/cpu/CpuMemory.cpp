#include "runtime/cpu/CpuMemory.h"

#include "runtime/core/Error.h"
#include "runtime/core/ParallelFor.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <utility>

namespace dlc::rt {

CpuMemory::CpuMemory(size_t bytes) {
  constexpr size_t hugePage = size_t{2} << 20;
  if (bytes == 0)
    return;
  size_t size = bytes + hugePage;
  void *address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    throw Error(ErrorCode::Runtime, "cannot allocate " + std::to_string(bytes >> 20) +
                                        " MiB of memory: " + std::strerror(errno) +
                                        "; compile with a smaller batch");
  mapped = {static_cast<std::byte *>(address), size};
  size_t skip = (hugePage - reinterpret_cast<uintptr_t>(address) % hugePage) % hugePage;
  usable = mapped.subspan(skip, bytes);
  madvise(usable.data(), bytes, MADV_HUGEPAGE); // refused where huge pages are off: only slower
  constexpr size_t page = 4096;
  parallelFor(static_cast<int64_t>(bytes), static_cast<int64_t>(hugePage),
              [&](int64_t begin, int64_t end) {
                for (int64_t at = begin; at < end; at += page)
                  usable[static_cast<size_t>(at)] = std::byte{0};
              });
}

CpuMemory::CpuMemory(CpuMemory &&other) noexcept
    : mapped(std::exchange(other.mapped, {})), usable(std::exchange(other.usable, {})) {}

CpuMemory::~CpuMemory() {
  if (!mapped.empty())
    munmap(mapped.data(), mapped.size());
}

} // namespace dlc::rt
