// Arenas at addresses that the host cannot touch: each stands for memory elsewhere, where the
// device's own kernels find it.
#pragma once

#include "runtime/core/DeviceSpan.h"
#include "runtime/core/ResolvedProgram.h"

#include <map>

namespace dlc::rt::test {

class HiddenMemory {
public:
  HiddenMemory() = default;
  ~HiddenMemory();
  HiddenMemory(const HiddenMemory &) = delete;
  HiddenMemory &operator=(const HiddenMemory &) = delete;

  /// An address range of this size that faults, in place of the memory.
  DeviceSpan hide(DeviceSpan memory);
  /// What stands behind a part of a hidden range. Throws Error for any other.
  DeviceSpan reveal(DeviceSpan hidden) const;
  Places reveal(const Places &places) const { return {reveal(places[0]), reveal(places[1])}; }

private:
  std::map<uintptr_t, DeviceSpan> memories; // by where their ranges begin
};

} // namespace dlc::rt::test
