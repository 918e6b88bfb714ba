// Copies in which all threads of the team share.
#pragma once

#include "runtime/core/ParallelFor.h"

#include <cstddef>
#include <cstring>
#include <span>

namespace dlc::rt {

inline constexpr int64_t teamCopyPiece = 1 << 20; // bytes

/// `to` has room for all of `from`.
inline void copyOnTeam(std::span<const std::byte> from, std::span<std::byte> to) {
  parallelFor(static_cast<int64_t>(from.size()), teamCopyPiece, [&](int64_t begin, int64_t end) {
    std::memcpy(to.data() + begin, from.data() + begin, static_cast<size_t>(end - begin));
  });
}

} // namespace dlc::rt
