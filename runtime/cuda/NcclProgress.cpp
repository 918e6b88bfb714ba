#include "runtime/cuda/NcclProgress.h"

#include <algorithm>
#include <atomic>
#include <numeric>

namespace dlc::rt {

NcclProgress::NcclProgress(const CudaContext &context, const ResolvedProgram &program)
    : cuda(context.cuda()), program(program) {
  std::vector<uint32_t> values(std::max<size_t>(program.collectives.size(), 1));
  std::iota(values.begin(), values.end(), 1);
  size_t bytes = values.size() * sizeof(uint32_t);
  cuda.require(cuda.malloc(&numbers, bytes), "allocate memory on the GPU");
  void *locked = nullptr;
  cuda.require(cuda.hostAlloc(&locked, runs.size() * sizeof(uint32_t), 0), "lock memory");
  reached = static_cast<uint32_t *>(locked);
  cuda.require(cuda.memcpy(numbers, values.data(), bytes, cudart::CopyKind::HostToDevice),
               "copy to the GPU");
  cuda.require(cuda.deviceSynchronize(), "copy to the GPU");
}

NcclProgress::~NcclProgress() {
  cuda.freeHost(reached);
  cuda.free(numbers);
}

void NcclProgress::begin(const RunArguments &arguments, NcclGroup &group) {
  last = arguments.slot;
  reached[last] = 0;
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
  cuda.require(cuda.memcpyAsync(&reached[slot], static_cast<uint32_t *>(numbers) + number,
                                sizeof(uint32_t), cudart::CopyKind::DeviceToHost, stream),
               "copy from the GPU");
}

ControlPlane::Standing NcclProgress::standing(bool isLast) const {
  unsigned slot = isLast ? last : 1 - last;
  uint32_t count = std::atomic_ref(reached[slot]).load(std::memory_order_acquire);
  return {runs[slot].first, runs[slot].first + count};
}

std::string NcclProgress::nameOf(uint64_t collective) const {
  for (const Run &run : runs)
    if (collective >= run.first && collective - run.first < run.collectives.size()) {
      uint32_t index = run.collectives[collective - run.first];
      return describe(CollectiveLabel{index, run.step + 1, program.collectives[index].members});
    }
  return "what follows step " + std::to_string(runs[last].step + 1);
}

} // namespace dlc::rt
