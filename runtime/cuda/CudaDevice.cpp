#include "runtime/cuda/CudaDevice.h"

#include "runtime/artifact/Error.h"
#include "runtime/cuda/CudaExecutable.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

namespace dlc::rt {
namespace {

/// The number behind a prefix, 90 of "sm_90"; 0 of other text.
int numberOf(std::string_view text, std::string_view prefix) {
  int number = 0;
  if (text.starts_with(prefix))
    std::from_chars(text.data() + prefix.size(), text.data() + text.size(), number);
  return number;
}

/// True if code of an architecture runs on a device: a binary within a generation, text upwards.
bool runsOn(std::string_view architecture, int capability) {
  if (int exact = numberOf(architecture, "sm_"))
    return exact / 10 == capability / 10 && exact <= capability;
  int least = numberOf(architecture, "compute_");
  return least > 0 && least <= capability;
}

} // namespace

CudaDevice::CudaDevice(const artifact::Target &target, ControlPlane &control)
    : control(control), context(control.localRank()), math(mathOf(target)) {
  context.requireOwn(target);
  if (control.size() > 1)
    peers.emplace(control, context);
}

CudaDevice::~CudaDevice() { context.cuda().deviceSynchronize(); }

Collectives &CudaDevice::collectives() { return control.hostCollectives(); }

//===- Memory ---------------------------------------------------------------------------------===//

DeviceSpan CudaDevice::allocate(size_t bytes) {
  allocated.push_back(context.allocate(bytes));
  return {reinterpret_cast<uintptr_t>(allocated.back().get()), bytes};
}

/// All-reduces follow each other on one stream, so that they may work in the same memory.
uint64_t CudaDevice::messageBytes(const Artifact &artifact) const {
  uint64_t bytes = 0;
  if (peers && artifact->programs())
    for (const artifact::Program *program : *artifact->programs())
      if (program->collectives())
        for (const artifact::Collective *collective : *program->collectives())
          bytes = std::max(bytes, peers->workBytes(collective->elements(), collective->wire()));
  return bytes;
}

void CudaDevice::allocateMessages(const Artifact &artifact) {
  if (uint64_t bytes = messageBytes(artifact); bytes > 0)
    peers->workIn(allocate(bytes));
}

DeviceSpan CudaDevice::allocate(artifact::ArenaKind kind, size_t bytes) {
  DeviceSpan memory = allocate(bytes);
  if (kind == artifact::ArenaKind::Inputs && bytes > 0)
    mirrors.push_back({memory, context.lock(bytes)});
  if (kind == artifact::ArenaKind::Gradients && peers)
    peers->registerMemory(memory);
  return memory;
}

std::optional<uint64_t> CudaDevice::freeMemory() const {
  size_t free = 0, total = 0;
  context.require(context.cuda().memGetInfo(&free, &total), "ask for free memory");
  return free;
}

void CudaDevice::countHugePages(std::span<const DeviceSpan>, std::span<uint64_t> bytes) const {
  std::ranges::fill(bytes, 0);
}

HostBlock CudaDevice::stage(DeviceSpan memory) {
  for (const Mirror &mirror : mirrors) // of which there are two
    if (mirror.memory.contains(memory))
      return {mirror.locked.bytes.subspan(memory.address - mirror.memory.address, memory.bytes),
              nullptr};
  auto block = std::make_shared<std::vector<std::byte>>(memory.bytes);
  return {*block, block};
}

/// Half of what is free is left to graphs, to NCCL and to others.
uint64_t CudaDevice::keepArrays(std::span<const uint64_t> sizes) {
  uint64_t bytes = KeptArrays::bytesFor(sizes);
  if (bytes == 0 || bytes > *freeMemory() / 2)
    return 0;
  Owned<void *> memory;
  try {
    memory = context.allocate(bytes);
  } catch (const Error &) { // as another process has taken the room
    context.cuda().getLastError();
    return 0;
  }
  arrays.emplace(context, std::move(memory), bytes);
  return bytes;
}

void CudaDevice::upload(std::span<const std::byte> from, DeviceSpan to) {
  const cudart::Functions &cuda = context.cuda();
  cuda.require(cuda.deviceSynchronize(), "run what was started on the GPU");
  cuda.require(cuda.memcpy(pointerTo(to), from.data(), from.size(), cudart::CopyKind::HostToDevice),
               "copy to the GPU");
  // A copy from memory that can move returns when it has been read.
  cuda.require(cuda.deviceSynchronize(), "copy to the GPU");
}

void CudaDevice::download(DeviceSpan from, std::span<std::byte> to) {
  const cudart::Functions &cuda = context.cuda();
  cuda.require(cuda.deviceSynchronize(), "run what was started on the GPU");
  cuda.require(cuda.memcpy(to.data(), pointerTo(from), to.size(), cudart::CopyKind::DeviceToHost),
               "copy from the GPU");
}

//===- Kernels --------------------------------------------------------------------------------===//

/// Of the binary for this device, or of the text.
cudart::Library CudaDevice::libraryOf(const Artifact &artifact) {
  const artifact::CodeModule *chosen = nullptr;
  for (const artifact::CodeModule *module : *artifact->modules()) {
    std::string_view architecture =
        module->architecture() ? module->architecture()->string_view() : "";
    bool isBinary = architecture.starts_with("sm_");
    if (runsOn(architecture, context.capability()) && (!chosen || isBinary))
      chosen = module;
  }
  if (!chosen)
    throw Error(ErrorCode::Artifact, "the artifact has no code for sm_" +
                                         std::to_string(context.capability()) +
                                         "; compile the model for it");
  Owned<cudart::Library> &library = libraries[chosen->code()->offset()];
  if (!library) {
    std::span<const uint8_t> code = artifact.data(*chosen->code());
    std::string ended(code.begin(), code.end()); // as text has to be
    library = context.cuda().load(ended, "load the artifact's code");
  }
  return library.get();
}

Device::Kernel CudaDevice::load(const Artifact &artifact, const artifact::Kernel &kernel) {
  std::string name = kernel.name()->str();
  if (kernel.kind() == artifact::KernelKind::Library) {
    CudaPlan plan = CudaPlan::of(kernel, math);
    if (plan.product) {
      kernels.emplace_back(ProductKernel(context.products(), plan, name));
    } else {
      ConvolutionKernel loaded(context.convolutions(), plan, name, math);
      if (!loaded.isAsPlanned())
        replanned.push_back(name);
      kernels.emplace_back(std::move(loaded));
    }
  } else {
    GeneratedKernel generated{name};
    context.cuda().require(context.cuda().libraryGetKernel(&generated.code, libraryOf(artifact),
                                                           kernel.symbol()->c_str()),
                           "find kernel " + name);
    int64_t blocks = (kernel.extent() - 1) / kernel.chunk() + 1;
    if (blocks > std::numeric_limits<int32_t>::max())
      throw Error(ErrorCode::Artifact,
                  "kernel " + name + " has more blocks than a launch may have");
    generated.blocks = static_cast<unsigned>(blocks);
    generated.threads = kernel.launch()->threads();
    kernels.emplace_back(generated);
  }
  return static_cast<Kernel>(kernels.size() - 1);
}

std::string CudaDevice::platform() const {
  return context.platform() + (peers ? ", " + peers->platform() : "");
}

std::vector<std::string> CudaDevice::notices() const {
  if (replanned.empty())
    return {};
  constexpr size_t shown = 3;
  std::string names;
  for (size_t i = 0; i < std::min(replanned.size(), shown); ++i)
    names += (i ? ", " : "") + replanned[i];
  if (replanned.size() > shown)
    names += " and " + std::to_string(replanned.size() - shown) + " more";
  return {"other engines than planned for " + names +
          ", which this machine's cuDNN does not offer: bits differ from those of the version that "
          "planned them; dlc-run tune chooses the fastest"};
}

std::unique_ptr<Executable> CudaDevice::prepare(ResolvedProgram program) {
  return std::make_unique<CudaExecutable>(*this, std::move(program));
}

} // namespace dlc::rt
