// A GPU for tests, without one: an artifact's generated kernels as the PTX that ships, on the
// emulator, its library kernels by plain loops from what their plans say. Computes at once, in
// memory of the host.
#pragma once

#include "runtime/core/Device.h"
#include "runtime/cuda/plans/CudaPlan.h"
#include "test/cuda/StoredGraph.h"
#include "test/ptx/Emulator.h"

#include <list>
#include <map>
#include <memory>
#include <variant>

namespace dlc::rt::test {

class EmulatedDevice final : public Device {
public:
  /// The collectives outlive the device.
  EmulatedDevice(const artifact::Target &target, HostCollectives &collectives);
  ~EmulatedDevice() override;

  DeviceSpan allocate(artifact::ArenaKind kind, size_t bytes) override;
  void countHugePages(std::span<const DeviceSpan>, std::span<uint64_t> bytes) const override;
  Kernel load(const Artifact &artifact, const artifact::Kernel &kernel) override;
  std::unique_ptr<Executable> prepare(ResolvedProgram program) override;
  HostBlock stage(DeviceSpan memory) override;
  void upload(std::span<const std::byte> from, DeviceSpan to) override;
  void download(DeviceSpan from, std::span<std::byte> to) override;
  Collectives &collectives() override { return hostCollectives; }

  /// Throws Error(Runtime) with what the emulator finds.
  void launch(Kernel kernel, std::span<const DeviceSpan> operands);

private:
  struct Generated {
    const ptx::Module *module;
    ptx::Launch launch;
  };
  struct Loaded {
    std::string name;
    std::vector<artifact::Access> access;
    std::variant<StoredGraph, ProductPlan, Generated> code;
    bool hasWorkspace = false; // the last operand
  };

  const ptx::Module &moduleOf(const Artifact &artifact);

  bool isStrict;
  HostCollectives &hostCollectives;
  std::list<std::vector<std::byte>> arenas;
  std::vector<DeviceSpan> shared;          // of the host's ranks: gradients
  std::map<uint64_t, ptx::Module> modules; // by offset in the data section
  std::vector<Loaded> kernels;
};

} // namespace dlc::rt::test
