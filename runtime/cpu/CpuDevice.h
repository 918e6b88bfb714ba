// Runs library kernels on oneDNN and generated kernels on the same team of threads. Its memory is
// the host's: staged memory is the arena itself.
#pragma once

#include "runtime/core/Device.h"
#include "runtime/cpu/CpuLaunch.h"
#include "runtime/cpu/CpuMemory.h"

#include <map>
#include <memory>
#include <vector>

namespace dlc::rt {

class CpuDevice final : public Device {
public:
  /// Sets the calling thread's team. Throws Error(Artifact) if this processor lacks an instruction
  /// set that the target needs. The collectives outlive the device.
  CpuDevice(const artifact::Target &target, unsigned threads, HostCollectives &collectives);
  ~CpuDevice() override;
  CpuDevice(const CpuDevice &) = delete;
  CpuDevice &operator=(const CpuDevice &) = delete;

  DeviceSpan allocate(artifact::ArenaKind kind, size_t bytes) override;
  void countHugePages(std::span<const DeviceSpan> memory, std::span<uint64_t> bytes) const override;
  Kernel load(const Artifact &artifact, const artifact::Kernel &kernel) override;
  std::unique_ptr<Executable> prepare(ResolvedProgram program) override;
  HostBlock stage(DeviceSpan memory) override { return {bytesAt(memory), nullptr}; }
  void upload(std::span<const std::byte> from, DeviceSpan to) override;
  void download(DeviceSpan from, std::span<std::byte> to) override;
  Collectives &collectives() override { return hostCollectives; }

private:
  dnnl::engine engine;
  dnnl::stream stream;
  HostCollectives &hostCollectives;
  unsigned threads;
  std::vector<CpuMemory> memories;
  std::vector<DeviceSpan> shared;                             // of the host's ranks: gradients
  std::map<uint64_t, std::unique_ptr<GeneratedCode>> modules; // by offset in the data section
  std::vector<LoadedKernel> kernels;
};

} // namespace dlc::rt
