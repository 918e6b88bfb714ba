// A library kernel alone, on memory of its own.
#pragma once

#include "runtime/core/Device.h"

#include <cstddef>
#include <vector>

namespace dlc::rt {

/// Its operands, the workspace among them, lie one behind the other.
class PlacedKernel {
public:
  /// That they take; none for a kernel without operands.
  static size_t bytesOf(const artifact::Kernel &definition);

  /// The memory has as many bytes, or more.
  PlacedKernel(const artifact::Kernel &definition, DeviceSpan memory);

  const std::vector<DeviceSpan> &operands() const { return places; }
  /// So many launches of the kernel, as loaded.
  ResolvedProgram launches(Device::Kernel kernel, int count) const;

private:
  std::vector<DeviceSpan> places;
};

} // namespace dlc::rt
