// Blocks of a few kilobytes are summed in a buffer that stays in the first-level cache: every
// contribution is read once from memory and every destination written once, however many there are.
#include "runtime/comm/SliceSum.h"

#include "runtime/core/Bf16.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace dlc::rt {
namespace {

constexpr size_t blockElements = 1024;

void roundAll(float *__restrict values, size_t count) {
  for (size_t i = 0; i < count; ++i)
    values[i] = floatFromBf16(bf16FromFloat(values[i]));
}

void load(const Contribution &from, size_t begin, size_t count, bool rounded,
          float *__restrict to) {
  if (from.bf16) {
    unpackBf16({from.bf16 + begin, count}, to);
    return;
  }
  std::memcpy(to, from.f32 + begin, count * sizeof(float));
  if (rounded)
    roundAll(to, count);
}

void add(const float *__restrict from, size_t count, float *__restrict to) {
  for (size_t i = 0; i < count; ++i)
    to[i] += from[i];
}

} // namespace

void sumContributions(std::span<const Contribution> contributions,
                      std::span<float *const> destinations, size_t begin, size_t end,
                      artifact::DType wire) {
  const bool rounded = wire == artifact::DType::BF16;
  alignas(64) std::array<float, blockElements> sum;
  alignas(64) std::array<float, blockElements> converted;
  for (size_t at = begin; at < end; at += blockElements) {
    size_t count = std::min(blockElements, end - at);
    load(contributions[0], at, count, rounded, sum.data());
    for (const Contribution &next : contributions.subspan(1)) {
      const float *values = next.f32 ? next.f32 + at : nullptr;
      if (rounded) {
        load(next, at, count, true, converted.data());
        values = converted.data();
      }
      add(values, count, sum.data());
    }
    if (rounded)
      roundAll(sum.data(), count);
    for (float *destination : destinations)
      std::memcpy(destination + at, sum.data(), count * sizeof(float));
  }
}

void packBf16(std::span<const float> from, uint16_t *__restrict to) {
  for (size_t i = 0; i < from.size(); ++i)
    to[i] = bf16FromFloat(from[i]);
}

void unpackBf16(std::span<const uint16_t> from, float *__restrict to) {
  for (size_t i = 0; i < from.size(); ++i)
    to[i] = floatFromBf16(from[i]);
}

} // namespace dlc::rt
