// All memory of a session: one allocation per arena, made before the first step.
//
// The Inputs arena exists twice, so that one can be filled while a program runs on the other.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "runtime/core/Collectives.h"
#include "runtime/core/Device.h"

#include <array>
#include <cstdint>
#include <span>
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
  /// Collective: gradients are shared with the ranks of this host, in the artifact's order of
  /// arenas.
  Arenas(const Artifact &artifact, HostCollectives &collectives, Device &device);
  ~Arenas();
  Arenas(const Arenas &) = delete;
  Arenas &operator=(const Arenas &) = delete;

  /// Memory of a buffer when the program runs on input arena `slot`.
  std::span<std::byte> memory(uint32_t buffer, unsigned slot) const;
  /// Bytes of all allocations, both input arenas included.
  uint64_t bytes() const { return total; }
  /// In the artifact's order.
  std::vector<ArenaPages> pages() const;

private:
  const Artifact &artifact;
  HostCollectives &collectives;
  std::vector<DeviceSpan> gradients;
  std::vector<std::array<std::span<std::byte>, 2>> arenas; // equal but for inputs
  uint64_t total = 0;
};

} // namespace dlc::rt
