// Runs library kernels on oneDNN and generated kernels on the same team of threads.
#pragma once

#include "runtime/core/Device.h"
#include "runtime/cpu/CpuMemory.h"
#include "runtime/cpu/GeneratedCode.h"
#include "runtime/cpu/OneDnnKernel.h"

#include <map>
#include <memory>
#include <variant>
#include <vector>

namespace dlc::rt {

class CpuDevice final : public Device {
public:
  /// Sets the calling thread's team. Throws Error(Artifact) if this processor lacks an instruction
  /// set that the target needs.
  CpuDevice(const artifact::Target &target, unsigned threads);

  std::span<std::byte> allocate(size_t bytes) override;
  Kernel load(const Artifact &artifact, const artifact::Kernel &kernel) override;
  Binding bind(Kernel kernel, std::span<void *const> buffers) override;
  void launch(Binding binding) override;
  void copy(void *to, const void *from, size_t bytes) override;
  void write(std::span<std::byte> memory,
             const std::function<void(std::span<std::byte>)> &author) override {
    author(memory);
  }
  void fill(void *at, uint8_t value, size_t bytes) override;

private:
  struct Generated {
    const KernelRecord *record;
    int64_t extent;
    int64_t chunk;
  };
  struct GeneratedBinding {
    Generated kernel;
    std::vector<void *> buffers;
  };

  dnnl::engine engine;
  dnnl::stream stream;
  std::vector<CpuMemory> memories;
  std::map<uint64_t, std::unique_ptr<GeneratedCode>> modules; // by offset in the data section
  std::vector<std::variant<OneDnnKernel, Generated>> kernels;
  std::vector<std::variant<OneDnnKernel::Binding, GeneratedBinding>> bindings;
};

} // namespace dlc::rt
