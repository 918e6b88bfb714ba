// Philox4x32-10 counter-based random numbers (Salmon et al. 2011, "Parallel random numbers: as easy
// as 1, 2, 3").
//
// The value for an element depends on (key, counter) alone: not on threads, layout, ranks or order.
// The compiler emits the same function for dropout; the reference evaluator and the initialisers
// call this one. Convention: key = seed; counter = (element low, element high, stream, step) with
// stream = hash32 of the op's name path and element the logical row-major index in the global batch
// divided by 4; word element % 4 of the result.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace dlc::rt {

// Inlined and unrolled so that loops over elements become vectors.
[[gnu::always_inline]] inline std::array<uint32_t, 4> philox(uint64_t key,
                                                             std::array<uint32_t, 4> counter) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53} * counter[0];
    uint64_t p1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return counter;
}

/// FNV-1a of a name path: the random stream of an op or variable.
inline uint32_t randomStream(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (char c : name)
    hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

/// 32 random bits of one element.
inline uint32_t philoxBits(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element) {
  uint64_t group = element / 4;
  return philox(seed, {static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32), stream,
                       step})[element % 4];
}

/// Uniform in [0, 1) with 24 bits: exact in f32.
inline float uniform01(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1.0p-24f; }

} // namespace dlc::rt
