// A kernel loaded on the CPU, of the library, ours or generated, and its launch on fixed operands.
#pragma once

#include "runtime/core/DeviceSpan.h"
#include "runtime/cpu/GeneratedCode.h"
#include "runtime/cpu/OneDnnKernel.h"
#include "runtime/cpu/kernels/WeightPacking.h"
#include "runtime/cpu/kernels/WinogradConv.h"

#include <span>
#include <variant>
#include <vector>

namespace dlc::rt {

struct GeneratedKernel {
  const KernelRecord *record;
  int64_t extent;
  int64_t chunk;
};

using LoadedKernel = std::variant<OneDnnKernel, WeightPacking, WinogradConv, GeneratedKernel>;

class CpuLaunch {
public:
  /// Operands in the order of the kernel's.
  CpuLaunch(const LoadedKernel &kernel, const dnnl::engine &engine,
            std::span<const DeviceSpan> operands);
  void run(const dnnl::stream &stream) const;

private:
  struct Generated {
    GeneratedKernel kernel;
    std::vector<void *> buffers;
  };
  struct Packing {
    WeightPacking packing;
    const void *from;
    void *to;
  };
  struct Winograd {
    WinogradConv conv;
    std::vector<void *> buffers;
  };
  using Bound = std::variant<OneDnnKernel::Binding, Packing, Winograd, Generated>;
  static Bound bind(const LoadedKernel &kernel, const dnnl::engine &engine,
                    std::span<const DeviceSpan> operands);

  Bound bound;
};

} // namespace dlc::rt
