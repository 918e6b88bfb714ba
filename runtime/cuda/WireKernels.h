// Kernels of gradients that travel as bf16: how many elements and ranks there are is known when
// they run, so they are text here and none of the compiler's.
#pragma once

#include "runtime/core/DeviceSpan.h"
#include "runtime/cuda/libraries/Cudart.h"

#include <string>

namespace dlc::rt {

class WireKernels {
public:
  /// PTX for every device since Ampere, which the driver assembles. Any number of blocks and
  /// threads computes the same.
  static std::string text();

  /// Throws Error(Runtime) if the driver does not take the text. `cuda` outlives it.
  explicit WireKernels(const cudart::Functions &cuda);

  // All memory begins at multiples of 16 bytes.

  /// Rounds f32 to bf16, to nearest even.
  void narrow(DeviceSpan from, DeviceSpan to, cudart::Stream stream) const;
  /// Adds contributions in bf16, which lie one after the other, in their order in f32, and rounds
  /// the sum. Each is as large as the sum, which is a multiple of 16 bytes and not empty.
  void add(DeviceSpan contributions, DeviceSpan sum, cudart::Stream stream) const;
  void widen(DeviceSpan from, DeviceSpan to, cudart::Stream stream) const;

private:
  void launch(cudart::Kernel kernel, DeviceSpan from, DeviceSpan to, uint64_t elements,
              uint64_t ranks, cudart::Stream stream) const;

  const cudart::Functions &cuda;
  Owned<cudart::Library> library;
  cudart::Kernel narrowing = nullptr, adding = nullptr, widening = nullptr;
};

} // namespace dlc::rt
