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
  if (const auto *packing = std::get_if<WeightPacking>(&kernel))
    return Packing{*packing, buffers.at(0), buffers.at(1)};
  if (const auto *winograd = std::get_if<WinogradConv>(&kernel))
    return Winograd{*winograd, std::move(buffers)};
  return Generated{std::get<GeneratedKernel>(kernel), std::move(buffers)};
}

CpuLaunch::CpuLaunch(const LoadedKernel &kernel, const dnnl::engine &engine,
                     std::span<const DeviceSpan> operands)
    : bound(bind(kernel, engine, operands)) {}

void CpuLaunch::run(const dnnl::stream &stream) const {
  if (const auto *library = std::get_if<OneDnnKernel::Binding>(&bound))
    return library->launch(stream);
  if (const auto *weight = std::get_if<Packing>(&bound))
    return weight->packing.run(weight->from, weight->to);
  if (const auto *winograd = std::get_if<Winograd>(&bound))
    return winograd->conv.run(winograd->buffers);
  const auto &generated = std::get<Generated>(bound);
  parallelFor(generated.kernel.extent, generated.kernel.chunk, [&](int64_t begin, int64_t end) {
    generated.kernel.record->run(generated.buffers.data(), begin, end);
  });
}

} // namespace dlc::rt
