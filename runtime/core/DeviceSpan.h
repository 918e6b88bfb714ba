// Memory of a device: where it lies, not what is in it.
//
// Only the device, or who shares its address space, may follow the address. The host puts data
// there and takes them from there through the device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dlc::rt {

struct DeviceSpan {
  uintptr_t address = 0;
  size_t bytes = 0;

  DeviceSpan subspan(size_t offset, size_t count) const { return {address + offset, count}; }
  bool contains(DeviceSpan part) const {
    return part.address >= address && part.bytes <= bytes &&
           part.address - address <= bytes - part.bytes;
  }
  bool operator==(const DeviceSpan &) const = default;
};

} // namespace dlc::rt
