#include "runtime/cpu/CpuDevice.h"

#include "runtime/artifact/Contract.h"
#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/HostFeatures.h"
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

CpuDevice::CpuDevice(const artifact::Target &target, unsigned threads) {
  limitInstructionSets(targetOf(target, threads));
  setTeamSize(threads);
  // oneDNN's cache takes reorders for equal whose layouts differ in dimensions of extent 1 alone,
  // so that what it offers would depend on what was loaded before. An artifact repeats no kernel.
  dnnl_set_primitive_cache_capacity(0);
  engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
  stream = dnnl::stream(engine);
}

std::span<std::byte> CpuDevice::allocate(size_t bytes) {
  memories.emplace_back(bytes);
  return memories.back().bytes();
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

Device::Binding CpuDevice::bind(Kernel kernel, std::span<void *const> buffers) {
  if (const auto *library = std::get_if<OneDnnKernel>(&kernels[kernel]))
    bindings.emplace_back(OneDnnKernel::Binding(*library, engine, buffers));
  else
    bindings.emplace_back(
        GeneratedBinding{std::get<Generated>(kernels[kernel]), {buffers.begin(), buffers.end()}});
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

void CpuDevice::copy(void *to, const void *from, size_t bytes) {
  parallelFor(static_cast<int64_t>(bytes), pieceBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<std::byte *>(to) + begin, static_cast<const std::byte *>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

void CpuDevice::fill(void *at, uint8_t value, size_t bytes) {
  parallelFor(static_cast<int64_t>(bytes), pieceBytes, [&](int64_t begin, int64_t end) {
    std::memset(static_cast<std::byte *>(at) + begin, value, static_cast<size_t>(end - begin));
  });
}

} // namespace dlc::rt
