#include "test/cuda/EmulatedDevice.h"

#include "runtime/artifact/Error.h"
#include "test/cuda/EmulatedExecutable.h"
#include "test/cuda/Product.h"

#include <algorithm>
#include <string_view>

namespace dlc::rt::test {
namespace {

constexpr std::byte notANumber{0xff};

std::span<std::byte> bytesAt(DeviceSpan memory) {
  return {reinterpret_cast<std::byte *>(memory.address), memory.bytes};
}

ptx::Use useOf(artifact::Access access) {
  return access == artifact::Access::Read    ? ptx::Use::Read
         : access == artifact::Access::Write ? ptx::Use::Write
                                             : ptx::Use::ReadWrite;
}

} // namespace

EmulatedDevice::EmulatedDevice(const artifact::Target &target, HostCollectives &collectives)
    : isStrict(mathOf(target) == Math::Strict), hostCollectives(collectives) {}

EmulatedDevice::~EmulatedDevice() {
  for (DeviceSpan memory : shared)
    hostCollectives.unregisterMemory(memory);
}

DeviceSpan EmulatedDevice::allocate(artifact::ArenaKind kind, size_t bytes) {
  if (kind == artifact::ArenaKind::Gradients)
    return shared.emplace_back(hostCollectives.allocateShared(bytes));
  std::vector<std::byte> &arena = arenas.emplace_back(bytes);
  return {reinterpret_cast<uintptr_t>(arena.data()), bytes};
}

void EmulatedDevice::countHugePages(std::span<const DeviceSpan>, std::span<uint64_t> bytes) const {
  std::ranges::fill(bytes, 0);
}

HostBlock EmulatedDevice::stage(DeviceSpan memory) { return {bytesAt(memory), nullptr}; }

void EmulatedDevice::upload(std::span<const std::byte> from, DeviceSpan to) {
  if (from.data() != bytesAt(to).data())
    std::ranges::copy(from, bytesAt(to).begin());
}

void EmulatedDevice::download(DeviceSpan from, std::span<std::byte> to) {
  std::ranges::copy(bytesAt(from).first(to.size()), to.begin());
}

std::unique_ptr<Executable> EmulatedDevice::prepare(ResolvedProgram program) {
  return std::make_unique<EmulatedExecutable>(*this, std::move(program));
}

//===- Kernels --------------------------------------------------------------------------------===//

/// The text, which every artifact for GPUs has.
const ptx::Module &EmulatedDevice::moduleOf(const Artifact &artifact) {
  for (const artifact::CodeModule *stored : *artifact->modules()) {
    if (!stored->architecture() || !stored->architecture()->string_view().starts_with("compute_"))
      continue;
    auto [found, isNew] = modules.try_emplace(stored->code()->offset());
    if (isNew) {
      std::span<const uint8_t> code = artifact.data(*stored->code());
      std::string text(reinterpret_cast<const char *>(code.data()), code.size()), reason;
      found->second = ptx::parse(text.c_str(), reason);
      if (!reason.empty())
        throw Error(ErrorCode::Artifact, "the emulator refuses the artifact's PTX: " + reason);
    }
    return found->second;
  }
  throw Error(ErrorCode::Artifact, "the artifact has no PTX");
}

Device::Kernel EmulatedDevice::load(const Artifact &artifact, const artifact::Kernel &kernel) {
  std::vector<artifact::Access> access;
  for (artifact::Access each : *kernel.access())
    access.push_back(each);
  std::string name = kernel.name()->str();
  if (kernel.kind() == artifact::KernelKind::Generated) {
    ptx::Launch launch;
    launch.entry = kernel.symbol()->str();
    launch.blocks = static_cast<uint32_t>((kernel.extent() + kernel.chunk() - 1) / kernel.chunk());
    launch.threads = kernel.launch()->threads();
    kernels.push_back({name, access, Generated{&moduleOf(artifact), launch}});
  } else {
    CudaPlan plan = CudaPlan::of(kernel, isStrict ? Math::Strict : Math::Fast);
    bool hasWorkspace = plan.workspaceBytes > 0;
    if (plan.product)
      kernels.push_back({name, access, *plan.product, hasWorkspace});
    else
      kernels.push_back({name, access, StoredGraph(plan.convolutions.front()), hasWorkspace});
  }
  return static_cast<Kernel>(kernels.size() - 1);
}

void EmulatedDevice::launch(Kernel number, std::span<const DeviceSpan> operands) {
  const Loaded &kernel = kernels[number];
  std::vector<std::span<std::byte>> memory;
  for (DeviceSpan operand : operands)
    memory.push_back(bytesAt(operand));
  if (kernel.hasWorkspace)
    std::ranges::fill(memory.back(), notANumber);
  if (const auto *graph = std::get_if<StoredGraph>(&kernel.code))
    return graph->run(memory, /*isTf32=*/!isStrict);
  if (const auto *product = std::get_if<ProductPlan>(&kernel.code))
    return multiply(*product, memory);
  const auto &generated = std::get<Generated>(kernel.code);
  ptx::Launch launch = generated.launch;
  ptx::Memory regions;
  for (size_t i = 0; i < memory.size(); ++i)
    launch.arguments.push_back(
        regions.add("operand " + std::to_string(i), memory[i], useOf(kernel.access[i])));
  ptx::Report report = ptx::Emulator(*generated.module, regions).run(launch);
  if (!report.faults.empty())
    throw Error(ErrorCode::Runtime, "kernel " + kernel.name + ": " + report.faults.front());
}

} // namespace dlc::rt::test
