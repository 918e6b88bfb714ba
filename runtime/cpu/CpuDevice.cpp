#include "runtime/cpu/CpuDevice.h"

#include "runtime/artifact/Contract.h"
#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/HostFeatures.h"
#include "runtime/core/Pages.h"
#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/CpuPlanner.h"

#include <cstring>

namespace dlc::rt {
namespace {

// Pieces of a large copy or fill, so that all threads share in it.
constexpr int64_t pieceBytes = 1 << 20;

CpuTarget targetOf(const artifact::Target &target, unsigned threads) {
  std::vector<std::string> wanted;
  if (target.features())
    for (const flatbuffers::String *feature : *target.features())
      wanted.push_back(feature->str());
  std::string missing;
  for (const std::string &feature : missingFeatures(wanted))
    missing += (missing.empty() ? "" : ", ") + feature;
  if (!missing.empty())
    throw Error(ErrorCode::Artifact, "the artifact was compiled for " + target.name()->str() +
                                         " and needs " + missing + ", which this processor (" +
                                         hostProcessor() +
                                         ") lacks; compile it with a --target of this machine");
  return {target.name()->str(), threads};
}

void requireContract(const KernelRecord &record, const artifact::Kernel &kernel) {
  KernelContract contract(kernel.extent(), kernel.chunk());
  for (uint32_t i = 0; kernel.operands() && i < kernel.operands()->size(); ++i) {
    const artifact::TensorType &type = *kernel.operands()->Get(i);
    contract.add(type.dtype(), readShape(type), *readLayout(type));
  }
  if (record.contract != 0 && record.contract != contract.value())
    throw Error(ErrorCode::Artifact,
                "kernel " + kernel.name()->str() +
                    ": its code was generated for other iterations or buffers than the artifact "
                    "says; compile the model again");
}

} // namespace

CpuDevice::CpuDevice(const artifact::Target &target, unsigned threads, HostCollectives &collectives)
    : hostCollectives(collectives) {
  limitInstructionSets(targetOf(target, threads));
  setTeamSize(threads);
  // oneDNN's cache takes reorders for equal whose layouts differ in dimensions of extent 1 alone,
  // so that what it offers would depend on what was loaded before. An artifact repeats no kernel.
  dnnl_set_primitive_cache_capacity(0);
  engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
  stream = dnnl::stream(engine);
}

CpuDevice::~CpuDevice() {
  for (DeviceSpan memory : shared)
    hostCollectives.unregisterMemory(memory);
}

DeviceSpan CpuDevice::allocate(artifact::ArenaKind kind, size_t bytes) {
  if (kind == artifact::ArenaKind::Gradients) {
    DeviceSpan memory = shared.emplace_back(hostCollectives.allocateShared(bytes));
    prefault(bytesAt(memory)); // no peer writes here before it has done as much for its own
    return memory;
  }
  std::span<std::byte> memory = memories.emplace_back(bytes).bytes();
  return {reinterpret_cast<uintptr_t>(memory.data()), memory.size()};
}

void CpuDevice::countHugePages(std::span<const DeviceSpan> memory,
                               std::span<uint64_t> bytes) const {
  rt::countHugePages(memory, bytes);
}

Device::Kernel CpuDevice::load(const Artifact &artifact, const artifact::Kernel &kernel) {
  if (kernel.kind() == artifact::KernelKind::Library) {
    std::string name = kernel.name()->str();
    CpuPlan plan = CpuPlan::deserialize({kernel.plan()->data(), kernel.plan()->size()}, name);
    plan.requireOperands(kernel);
    kernels.emplace_back(OneDnnKernel(engine, name, plan));
  } else {
    const artifact::Span &code = *artifact->modules()->Get(kernel.module_())->code();
    std::unique_ptr<GeneratedCode> &module = modules[code.offset()];
    if (!module)
      module = std::make_unique<GeneratedCode>(artifact.data(code));
    const KernelRecord &record = module->kernel(kernel.symbol()->str());
    requireContract(record, kernel);
    kernels.emplace_back(Generated{&record, kernel.extent(), kernel.chunk()});
  }
  return static_cast<Kernel>(kernels.size() - 1);
}

Device::Binding CpuDevice::bind(Kernel kernel, std::span<const DeviceSpan> spans) {
  std::vector<void *> buffers;
  for (DeviceSpan span : spans)
    buffers.push_back(bytesAt(span).data());
  if (const auto *library = std::get_if<OneDnnKernel>(&kernels[kernel]))
    bindings.emplace_back(OneDnnKernel::Binding(*library, engine, buffers));
  else
    bindings.emplace_back(
        GeneratedBinding{std::get<Generated>(kernels[kernel]), std::move(buffers)});
  return static_cast<Binding>(bindings.size() - 1);
}

void CpuDevice::launch(Binding binding) {
  if (const auto *library = std::get_if<OneDnnKernel::Binding>(&bindings[binding]))
    return library->launch(stream);
  const auto &generated = std::get<GeneratedBinding>(bindings[binding]);
  parallelFor(generated.kernel.extent, generated.kernel.chunk, [&](int64_t begin, int64_t end) {
    generated.kernel.record->run(generated.buffers.data(), begin, end);
  });
}

static void copyOnTeam(const std::byte *from, std::byte *to, size_t bytes) {
  parallelFor(static_cast<int64_t>(bytes), pieceBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

void CpuDevice::copy(DeviceSpan from, DeviceSpan to) {
  copyOnTeam(bytesAt(from).data(), bytesAt(to).data(), from.bytes);
}

void CpuDevice::fill(DeviceSpan memory, uint8_t value) {
  parallelFor(static_cast<int64_t>(memory.bytes), pieceBytes, [&](int64_t begin, int64_t end) {
    std::memset(bytesAt(memory).data() + begin, value, static_cast<size_t>(end - begin));
  });
}

/// Nothing is to be done for what was composed in place.
void CpuDevice::upload(std::span<const std::byte> from, DeviceSpan to) {
  if (from.data() != bytesAt(to).data())
    copyOnTeam(from.data(), bytesAt(to).data(), from.size());
}

void CpuDevice::download(DeviceSpan from, std::span<std::byte> to) {
  copyOnTeam(bytesAt(from).data(), to.data(), to.size());
}

} // namespace dlc::rt
