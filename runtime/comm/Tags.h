// Message tags. Messages of one tag keep their order; operations in flight together do not, since
// each moves on as its own messages do, and so have tags of their own.
#pragma once

#include "runtime/comm/ControlBlock.h"

namespace dlc::rt::tags {

inline constexpr int small = 0;

inline constexpr int standing = static_cast<int>(1 + 2 * ControlBlock::ringSize);

inline int contribution(uint64_t sequence) {
  return static_cast<int>(1 + 2 * (sequence % ControlBlock::ringSize));
}
inline int sum(uint64_t sequence) { return contribution(sequence) + 1; }

} // namespace dlc::rt::tags
