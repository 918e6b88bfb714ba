// A kernel loaded on the CPU, of the library, ours or generated, and its launch on fixed operands.
#pragma once

#include "runtime/core/DeviceSpan.h"
#include "runtime/cpu/GeneratedCode.h"
#include "runtime/cpu/OneDnnKernel.h"
#include "runtime/cpu/kernels/OwnKernel.h"

#include <memory>
#include <span>
#include <variant>
#include <vector>

namespace dlc::rt {

struct GeneratedKernel {
  const KernelRecord *record;
  int64_t extent;
  int64_t chunk;
};

using LoadedKernel = std::variant<OneDnnKernel, std::shared_ptr<const OwnKernel>, GeneratedKernel>;

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
  struct Own {
    std::shared_ptr<const OwnKernel> kernel;
    std::vector<void *> buffers;
  };
  using Bound = std::variant<OneDnnKernel::Binding, Own, Generated>;
  static Bound bind(const LoadedKernel &kernel, const dnnl::engine &engine,
                    std::span<const DeviceSpan> operands);

  Bound bound;
};

} // namespace dlc::rt
