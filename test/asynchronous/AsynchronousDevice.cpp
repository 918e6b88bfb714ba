#include "test/asynchronous/AsynchronousDevice.h"

#include "runtime/cpu/CpuMemory.h"
#include "test/asynchronous/AsynchronousExecutable.h"

#include <algorithm>
#include <cstring>

namespace dlc::rt::test {

constexpr std::byte notANumber{0xff}; // every byte, of floats of any size

AsynchronousDevice::AsynchronousDevice(std::unique_ptr<Device> newKernels,
                                       AsynchronousOptions newOptions)
    : options(std::move(newOptions)), kernels(std::move(newKernels)), queue(options.seed) {}

DeviceSpan AsynchronousDevice::allocate(artifact::ArenaKind kind, size_t bytes) {
  DeviceSpan actual = kernels->allocate(kind, bytes);
  std::ranges::fill(bytesAt(actual), notANumber);
  DeviceSpan hidden = memory.hide(actual);
  if (kind == artifact::ArenaKind::Inputs)
    mirrors[hidden.address].resize(bytes);
  return hidden;
}

void AsynchronousDevice::countHugePages(std::span<const DeviceSpan>,
                                        std::span<uint64_t> bytes) const {
  std::ranges::fill(bytes, 0);
}

Device::Kernel AsynchronousDevice::load(const Artifact &artifact, const artifact::Kernel &kernel) {
  return kernels->load(artifact, kernel);
}

std::unique_ptr<Executable> AsynchronousDevice::prepare(ResolvedProgram program) {
  if (options.edit)
    options.edit(program);
  return std::make_unique<AsynchronousExecutable>(*this, std::move(program));
}

HostBlock AsynchronousDevice::stage(DeviceSpan span) {
  auto above = mirrors.upper_bound(span.address);
  if (above != mirrors.begin()) {
    auto &[start, mirror] = *std::prev(above);
    if (DeviceSpan{start, mirror.size()}.contains(span))
      return {std::span(mirror).subspan(span.address - start, span.bytes), nullptr};
  }
  auto block = std::make_shared<std::vector<std::byte>>(span.bytes, notANumber);
  return {*block, block};
}

void AsynchronousDevice::drain() {
  runEnds.clear();
  for (std::vector<TaskQueue::Task> &users : slotUsers)
    users.clear();
  queue.drain();
}

void AsynchronousDevice::upload(std::span<const std::byte> from, DeviceSpan to) {
  drain();
  std::ranges::copy(from, bytesAt(memory.reveal(to)).begin());
}

void AsynchronousDevice::download(DeviceSpan from, std::span<std::byte> to) {
  drain();
  std::ranges::copy(bytesAt(memory.reveal(from)).first(to.size()), to.begin());
}

} // namespace dlc::rt::test
