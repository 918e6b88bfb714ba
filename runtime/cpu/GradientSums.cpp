#include "runtime/cpu/GradientSums.h"

#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/CpuMemory.h"

namespace dlc::rt {

static constexpr int64_t chunk = 1 << 14;

GradientSums::GradientSums(const std::vector<ResolvedProgram::Collective> &collectives) {
  for (const ResolvedProgram::Collective &collective : collectives) {
    std::span<std::byte> memory = bytesAt(collective.operation.memory);
    sums.push_back({reinterpret_cast<float *>(memory.data()),
                    std::vector<float>(memory.size() / sizeof(float))});
  }
}

void GradientSums::add(uint32_t collective, bool isFirst) {
  float *sum = sums[collective].values.data();
  const float *contribution = sums[collective].contribution;
  parallelFor(static_cast<int64_t>(sums[collective].values.size()), chunk,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i)
                  sum[i] = isFirst ? contribution[i] : sum[i] + contribution[i];
              });
}

void GradientSums::complete(uint32_t collective) {
  const float *sum = sums[collective].values.data();
  float *contribution = sums[collective].contribution;
  parallelFor(static_cast<int64_t>(sums[collective].values.size()), chunk,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i)
                  contribution[i] = sum[i] + contribution[i];
              });
}

uint64_t GradientSums::bytes() const {
  uint64_t total = 0;
  for (const Sum &sum : sums)
    total += sum.values.size() * sizeof(float);
  return total;
}

} // namespace dlc::rt
