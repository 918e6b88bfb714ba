#include "runtime/core/Arenas.h"

#include "runtime/core/TensorIo.h"

namespace dlc::rt {

Arenas::Arenas(const Artifact &artifact, Communicator &communicator, Device &device)
    : artifact(artifact) {
  if (!artifact->arenas())
    return;
  for (const artifact::Arena *arena : *artifact->arenas()) {
    auto allocate = [&] {
      total += arena->bytes();
      return arena->kind() == artifact::ArenaKind::Gradients
                 ? communicator.allocateShared(arena->bytes())
                 : device.allocate(arena->bytes());
    };
    std::span<std::byte> first = allocate();
    bool twice = arena->kind() == artifact::ArenaKind::Inputs;
    arenas.push_back({first, twice ? allocate() : first});
  }
}

std::span<std::byte> Arenas::memory(uint32_t buffer, unsigned slot) const {
  const artifact::Buffer *stored = artifact->buffers()->Get(buffer);
  return arenas[stored->arena()][slot % 2].subspan(stored->offset(),
                                                   PhysicalType(*stored->type()).bytes());
}

} // namespace dlc::rt
