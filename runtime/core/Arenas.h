// All memory of a session: one allocation per arena, made before the first step.
//
// The Inputs arena exists twice, so that one can be filled while a program runs on the other.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "runtime/core/Device.h"

#include <array>
#include <cstdint>
#include <vector>

namespace dlc::rt {

/// What became of one kind of arena in this process.
struct ArenaPages {
  artifact::ArenaKind kind;
  uint64_t bytes;     // of all its instances
  uint64_t hugeBytes; // of these, on huge pages
};

class Arenas {
public:
  /// Collective. In the artifact's order of arenas, without that of sums.
  Arenas(const Artifact &artifact, Device &device);

  /// Allocates the arena of sums, if it is not there yet; its bytes.
  uint64_t allocateSums();
  bool haveSums() const { return hasSums; }

  /// Memory of a buffer when the program runs on input arena `slot`.
  DeviceSpan memory(uint32_t buffer, unsigned slot) const;
  /// Bytes of all allocations, both input arenas and what all-reduces work in included.
  uint64_t bytes() const { return total; }
  /// In the artifact's order.
  std::vector<ArenaPages> pages() const;

private:
  void allocate(size_t arena);

  const Artifact &artifact;
  Device &device;
  std::vector<std::array<DeviceSpan, 2>> arenas; // equal but for inputs
  bool hasSums = false;
  uint64_t total;
};

} // namespace dlc::rt
