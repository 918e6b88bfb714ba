// Memory of the stand-in GPU. The host cannot touch the device's addresses: each allocation is a
// range that faults, behind which its bytes lie elsewhere, NaN at first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace dlc::rt::standin {

class Memory {
public:
  static constexpr size_t capacity = size_t{4} << 30; // of the device

  /// Null if there is no room.
  void *allocate(size_t bytes);
  /// False if no allocation begins there.
  bool free(void *address);
  size_t freeBytes() const { return capacity - used; }

  void *allocateLocked(size_t bytes);
  bool freeLocked(void *address);

  bool isDevice(const void *address, size_t bytes) const;
  bool isLocked(const void *address, size_t bytes) const;
  /// From a device address to the end of its allocation. Throws Error if there is none.
  std::span<std::byte> from(const void *address);
  std::span<std::byte> at(const void *address, size_t bytes);

private:
  using Blocks = std::map<uintptr_t, std::vector<std::byte>>; // by address

  Blocks device;
  std::map<uintptr_t, size_t> locked;
  size_t used = 0;
};

} // namespace dlc::rt::standin
