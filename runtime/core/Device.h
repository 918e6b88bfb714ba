// Where kernels run: memory, loaded kernels, launches.
//
// Kernels are loaded and bound to their buffers before the first step; launching a binding neither
// allocates nor looks anything up. Made and used by one compute thread.
#pragma once

#include "runtime/artifact/Artifact.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace dlc::rt {

class Device {
public:
  using Kernel = uint32_t;
  using Binding = uint32_t;

  virtual ~Device() = default;

  /// Zeroed memory, 64-byte aligned and prefaulted, which lives as long as the device. Throws
  /// Error(Runtime) if there is not as much.
  virtual std::span<std::byte> allocate(size_t bytes) = 0;

  /// Loads exactly the planned kernel; throws Error(Artifact) naming it if that cannot be had.
  virtual Kernel load(const Artifact &artifact, const artifact::Kernel &kernel) = 0;
  /// Ties a kernel to its buffers, in the order of the kernel's operands.
  virtual Binding bind(Kernel kernel, std::span<void *const> buffers) = 0;

  virtual void launch(Binding binding) = 0;
  virtual void copy(void *to, const void *from, size_t bytes) = 0;
  /// Lets `author` write memory of this device: in place where the host reaches it.
  virtual void write(std::span<std::byte> memory,
                     const std::function<void(std::span<std::byte>)> &author) = 0;
  virtual void fill(void *at, uint8_t value, size_t bytes) = 0;
};

} // namespace dlc::rt
