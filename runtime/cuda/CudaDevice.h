// A GPU: its memory, the artifact's kernels on it, executables.
//
// Results are those of the artifact for this model of GPU and these versions of NVIDIA's libraries.
#pragma once

#include "runtime/core/ControlPlane.h"
#include "runtime/core/Device.h"
#include "runtime/cuda/CudaKernel.h"
#include "runtime/cuda/KeptArrays.h"
#include "runtime/cuda/NcclGroup.h"

#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace dlc::rt {

class CudaDevice final : public Device {
public:
  /// Takes the GPU of the rank's number on its host. Throws Error(Artifact) if the artifact is for
  /// another architecture, Error(Runtime) if there is no GPU or no library. `control` outlives it.
  CudaDevice(const artifact::Target &target, ControlPlane &control);
  ~CudaDevice() override;

  DeviceSpan allocate(artifact::ArenaKind kind, size_t bytes) override;
  void countHugePages(std::span<const DeviceSpan>, std::span<uint64_t> bytes) const override;
  uint64_t messageBytes(const Artifact &artifact) const override;
  void allocateMessages(const Artifact &artifact) override;
  std::optional<uint64_t> freeMemory() const override;
  Kernel load(const Artifact &artifact, const artifact::Kernel &kernel) override;
  std::string platform() const override;
  std::vector<std::string> notices() const override;
  std::unique_ptr<Executable> prepare(ResolvedProgram program) override;
  HostBlock stage(DeviceSpan memory) override;
  uint64_t keepArrays(std::span<const uint64_t> sizes) override;
  void upload(std::span<const std::byte> from, DeviceSpan to) override;
  void download(DeviceSpan from, std::span<std::byte> to) override;
  bool runsAhead() const override { return true; }
  Collectives &collectives() override;

private:
  friend class CudaExecutable;

  struct Mirror { // of an input arena, page-locked
    DeviceSpan memory;
    HostBlock locked;
  };

  DeviceSpan allocate(size_t bytes);
  cudart::Library libraryOf(const Artifact &artifact);

  ControlPlane &control;
  CudaContext context;
  Math math;
  std::vector<Owned<void *>> allocated;
  std::optional<NcclGroup> peers; // where there are several ranks; it has memory registered
  std::vector<Mirror> mirrors;
  std::optional<KeptArrays> arrays;
  std::map<uint64_t, Owned<cudart::Library>> libraries; // by offset in the data section
  std::deque<LoadedKernel> kernels;                     // which launches refer to
  std::vector<std::string> replanned; // kernels that other engines than planned have
};

} // namespace dlc::rt
