#include "runtime/cuda/NcclProgress.h"

#include <algorithm>
#include <atomic>
#include <numeric>

namespace dlc::rt {

NcclProgress::NcclProgress(const CudaContext &context, const ResolvedProgram &program)
    : cuda(context.cuda()), program(program),
      numbers(context.allocate((program.collectives.size() + 1) * sizeof(uint32_t))),
      locked(context.lock(2 * sizeof(uint32_t))) {
  std::vector<uint32_t> values(program.collectives.size() + 1);
  std::iota(values.begin(), values.end(), 1);
  cuda.require(cuda.memcpy(numbers.get(), values.data(), values.size() * sizeof(uint32_t),
                           cudart::CopyKind::HostToDevice),
               "copy to the GPU");
  cuda.require(cuda.deviceSynchronize(), "copy to the GPU");
}

void NcclProgress::begin(const RunArguments &arguments, NcclGroup &group) {
  last = arguments.slot;
  reached(last) = 0;
  Run &run = runs[last];
  run.collectives.clear();
  for (const ResolvedProgram::Instruction &instruction : program.instructions)
    if (const auto *start = std::get_if<ResolvedProgram::Start>(&instruction.operation);
        start && instruction.runsIn(arguments.part))
      run.collectives.push_back(start->collective);
  run.first = group.number(run.collectives.size());
  run.step = arguments.step;
}

void NcclProgress::reach(uint32_t number, unsigned slot, cudart::Stream stream) const {
  cuda.require(cuda.memcpyAsync(&reached(slot), static_cast<uint32_t *>(numbers.get()) + number,
                                sizeof(uint32_t), cudart::CopyKind::DeviceToHost, stream),
               "copy from the GPU");
}

uint32_t NcclProgress::count(unsigned slot) const {
  return static_cast<uint32_t>(runs[slot].collectives.size());
}

/// The one that it has come to may be under way: those before are complete.
ControlPlane::Standing NcclProgress::standing(bool isLast) const {
  unsigned slot = isLast ? last : 1 - last;
  uint32_t come = std::atomic_ref(reached(slot)).load(std::memory_order_acquire);
  uint64_t first = runs[slot].first;
  return {first + std::max(come, 1U) - 1, first + std::min(come, count(slot))};
}

std::string NcclProgress::nameOf(uint64_t collective) const {
  for (const Run &run : runs)
    if (collective >= run.first && collective - run.first < run.collectives.size()) {
      uint32_t index = run.collectives[collective - run.first];
      return describe(CollectiveLabel{index, run.step + 1, program.collectives[index].members});
    }
  return "the first all-reduce behind step " + std::to_string(runs[last].step + 1);
}

} // namespace dlc::rt
