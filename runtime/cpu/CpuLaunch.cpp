#include "runtime/cpu/CpuLaunch.h"

#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/CpuMemory.h"

namespace dlc::rt {

CpuLaunch::Bound CpuLaunch::bind(const LoadedKernel &kernel, const dnnl::engine &engine,
                                 std::span<const DeviceSpan> operands) {
  std::vector<void *> buffers;
  for (DeviceSpan operand : operands)
    buffers.push_back(bytesAt(operand).data());
  if (const auto *library = std::get_if<OneDnnKernel>(&kernel))
    return OneDnnKernel::Binding(*library, engine, buffers);
  if (const auto *own = std::get_if<std::shared_ptr<const OwnKernel>>(&kernel))
    return Own{*own, std::move(buffers)};
  return Generated{std::get<GeneratedKernel>(kernel), std::move(buffers)};
}

CpuLaunch::CpuLaunch(const LoadedKernel &kernel, const dnnl::engine &engine,
                     std::span<const DeviceSpan> operands)
    : bound(bind(kernel, engine, operands)) {}

void CpuLaunch::run(const dnnl::stream &stream) const {
  if (const auto *library = std::get_if<OneDnnKernel::Binding>(&bound))
    return library->launch(stream);
  if (const auto *own = std::get_if<Own>(&bound))
    return own->kernel->run(own->buffers);
  const auto &generated = std::get<Generated>(bound);
  parallelFor(generated.kernel.extent, generated.kernel.chunk, [&](int64_t begin, int64_t end) {
    generated.kernel.record->run(generated.buffers.data(), begin, end);
  });
}

} // namespace dlc::rt
