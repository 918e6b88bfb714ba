// Sizes that headers of files promise, checked before memory is allocated for them.
#pragma once

#include "runtime/data/readers/Damage.h"

#include <cstdint>
#include <initializer_list>
#include <string>

namespace dlc::rt {

/// The product of fields of the file's header. Throws Error(BadInput) where it exceeds 63 bits.
inline uint64_t checkedProduct(const std::string &path, std::initializer_list<uint64_t> factors) {
  uint64_t product = 1;
  bool isZero = false;
  for (uint64_t factor : factors)
    isZero |= factor == 0;
  for (uint64_t factor : factors)
    if (!isZero && (__builtin_mul_overflow(product, factor, &product) || product >> 63))
      throw Error(ErrorCode::BadInput,
                  "cannot read '" + path + "': its header promises an impossible size");
  return isZero ? 0 : product;
}

/// deflate codes 258 bytes in 2 bits at best.
inline constexpr uint64_t deflateRatio = 1032;

/// Throws Error(BadInput) if `stored` bytes of a file cannot hold `promised` ones, given how many
/// times smaller its compression makes data at best.
inline void requirePlausible(const std::string &path, uint64_t promised, uint64_t stored,
                             uint64_t ratio) {
  if (promised / ratio > stored)
    throw damagedFile(path, "its header promises " + std::to_string(promised) +
                                " bytes, more than the file's " + std::to_string(stored) +
                                " can hold");
}

} // namespace dlc::rt
