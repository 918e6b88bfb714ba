#include "runtime/cpu/CpuDevice.h"

#include "runtime/artifact/Contract.h"
#include "runtime/artifact/Error.h"
#include "runtime/core/HostFeatures.h"
#include "runtime/core/Pages.h"
#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/CpuExecutable.h"
#include "runtime/cpu/CpuPlanner.h"
#include "runtime/cpu/TeamCopy.h"

namespace dlc::rt {
namespace {

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
  if (record.contract != 0 && record.contract != contractOf(kernel))
    throw Error(ErrorCode::Artifact,
                "kernel " + kernel.name()->str() +
                    ": its code was generated for other iterations or buffers than the artifact "
                    "says; compile the model again");
}

std::shared_ptr<const OwnKernel> makeOwn(const std::string &name, const CpuPlan &plan,
                                         unsigned threads) {
  if (plan.request.threads < threads)
    throw Error(ErrorCode::Artifact, "kernel " + name + " was planned for teams of 1 to " +
                                         std::to_string(plan.request.threads) + ", not " +
                                         std::to_string(threads) + "; compile the model again");
  auto kernel = makeOwnKernel(plan.implementation, plan.request);
  if (kernel && kernel->workspaceBytes() == plan.workspaceBytes)
    return kernel;
  if (kernel)
    throw Error(ErrorCode::Artifact,
                "kernel " + name + " was planned as " + plan.implementation + " with " +
                    std::to_string(plan.workspaceBytes) + " bytes of workspace and takes " +
                    std::to_string(kernel->workspaceBytes()) + "; compile the model again");
  throw Error(ErrorCode::Artifact, "kernel " + name + " was planned as " + plan.implementation +
                                       ", which does not compute its operands on this processor; "
                                       "compile the model on this machine");
}

} // namespace

CpuDevice::CpuDevice(const artifact::Target &target, unsigned threads, HostCollectives &collectives)
    : hostCollectives(collectives), threads(threads) {
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
    if (isOwnKernel(plan.implementation))
      kernels.emplace_back(makeOwn(name, plan, threads));
    else
      kernels.emplace_back(OneDnnKernel(engine, name, plan));
  } else {
    const artifact::Span &code = *artifact->modules()->Get(kernel.module_())->code();
    std::unique_ptr<GeneratedCode> &module = modules[code.offset()];
    if (!module)
      module = std::make_unique<GeneratedCode>(artifact.data(code));
    const KernelRecord &record = module->kernel(kernel.symbol()->str());
    requireContract(record, kernel);
    kernels.emplace_back(GeneratedKernel{&record, kernel.extent(), kernel.chunk()});
  }
  return static_cast<Kernel>(kernels.size() - 1);
}

std::unique_ptr<Executable> CpuDevice::prepare(ResolvedProgram program) {
  return std::make_unique<CpuExecutable>(std::move(program), kernels,
                                         CpuContext{engine, stream, threads, hostCollectives});
}

/// Nothing is to be done for what was composed in place.
void CpuDevice::upload(std::span<const std::byte> from, DeviceSpan to) {
  if (from.data() != bytesAt(to).data())
    copyOnTeam(from, bytesAt(to));
}

void CpuDevice::download(DeviceSpan from, std::span<std::byte> to) {
  copyOnTeam(bytesAt(from), to);
}

} // namespace dlc::rt
