// What a rank lets the other ranks of its host see: how far it has come, and where its operands
// lie.
//
// Written by its owner alone. The data behind a counter is published by the counter's release store
// and may be read after an acquire load of it. Ranks start all-reduces in the same order, so that
// operation k means the same on all of them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sys/types.h>

namespace dlc::rt {

struct PublishedOperation {
  static constexpr uint64_t privateMemory = ~uint64_t{0};

  uint64_t elements = 0;
  uint64_t window = privateMemory; // which allocateShared call gave the operand's memory
  uint64_t offset = 0;             // bytes into it
  uint64_t wire = 0;
};

struct ControlBlock {
  /// Operations that may be posted at a time. Entry k of `published` is written again only when its
  /// owner has completed operation k, thus after every peer's `reduced` has passed k.
  static constexpr uint64_t ringSize = 256;

  alignas(64) std::atomic<uint64_t> started{0}; // operations 0..started-1 are posted
  alignas(64) std::atomic<uint64_t> reduced{0}; // own slices of 0..reduced-1 are summed and written
  alignas(64) std::atomic<uint32_t> left{0};    // 1: this rank has ended
  pid_t pid = 0;
  alignas(64) std::array<PublishedOperation, ringSize> published;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free, "counters are shared between processes");

} // namespace dlc::rt
