#include "runtime/core/Arenas.h"

#include "runtime/core/TensorIo.h"

namespace dlc::rt {

Arenas::Arenas(const Artifact &artifact, Device &device)
    : artifact(artifact), device(device),
      arenas(artifact->arenas() ? artifact->arenas()->size() : 0) {
  for (unsigned i = 0; i < arenas.size(); ++i)
    if (artifact->arenas()->Get(i)->kind() != artifact::ArenaKind::Sums)
      allocate(i);
}

void Arenas::allocate(size_t arena) {
  const artifact::Arena &planned = *artifact->arenas()->Get(static_cast<unsigned>(arena));
  auto make = [&] {
    total += planned.bytes();
    return device.allocate(planned.kind(), planned.bytes());
  };
  DeviceSpan first = make();
  bool twice = planned.kind() == artifact::ArenaKind::Inputs;
  arenas[arena] = {first, twice ? make() : first};
}

uint64_t Arenas::allocateSums() {
  uint64_t bytes = 0;
  for (unsigned i = 0; i < arenas.size(); ++i)
    if (const artifact::Arena *arena = artifact->arenas()->Get(i);
        arena->kind() == artifact::ArenaKind::Sums) {
      bytes += arena->bytes();
      if (!hasSums)
        allocate(i);
    }
  hasSums = true;
  return bytes;
}

DeviceSpan Arenas::memory(uint32_t buffer, unsigned slot) const {
  const artifact::Buffer *stored = artifact->buffers()->Get(buffer);
  return arenas[stored->arena()][slot % 2].subspan(stored->offset(),
                                                   PhysicalType(*stored->type()).bytes());
}

std::vector<ArenaPages> Arenas::pages() const {
  std::vector<DeviceSpan> spans;
  std::vector<size_t> owners;
  for (size_t i = 0; i < arenas.size(); ++i)
    for (size_t instance = 0; instance < 2; ++instance)
      if (instance == 0 ? arenas[i][0].bytes > 0 : arenas[i][1] != arenas[i][0]) {
        spans.push_back(arenas[i][instance]);
        owners.push_back(i);
      }
  std::vector<uint64_t> huge(spans.size());
  device.countHugePages(spans, huge);
  std::vector<ArenaPages> pages;
  pages.reserve(arenas.size());
  for (unsigned i = 0; i < arenas.size(); ++i)
    pages.push_back({artifact->arenas()->Get(i)->kind(), 0, 0});
  for (size_t i = 0; i < spans.size(); ++i) {
    pages[owners[i]].bytes += spans[i].bytes;
    pages[owners[i]].hugeBytes += huge[i];
  }
  return pages;
}

} // namespace dlc::rt
