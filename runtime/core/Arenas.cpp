#include "runtime/core/Arenas.h"

#include "runtime/artifact/Error.h"
#include "runtime/core/BytesText.h"
#include "runtime/core/TensorIo.h"

#include <optional>
#include <string>

namespace dlc::rt {
namespace {

/// Inputs and what is computed of them grow with the batch, but for what kernels work in. No larger
/// batch than this fits.
uint64_t largestBatch(const Artifact &artifact, uint64_t fixed, uint64_t grows, uint64_t free) {
  uint64_t batch = artifact->programs() && artifact->programs()->size()
                       ? artifact->programs()->Get(0)->batch()
                       : 0;
  return free > fixed && grows > 0
             ? static_cast<uint64_t>(static_cast<double>(batch) *
                                     static_cast<double>(free - fixed) / static_cast<double>(grows))
             : 0;
}

/// Before anything is allocated. Memory for sums is asked for later, by those who add up.
void requireRoom(const Artifact &artifact, const Device &device) {
  std::optional<uint64_t> free = device.freeMemory();
  if (!free || !artifact->arenas())
    return;
  uint64_t fixed = device.messageBytes(artifact), grows = 0;
  for (const artifact::Arena *arena : *artifact->arenas()) {
    if (arena->kind() == artifact::ArenaKind::Inputs)
      grows += 2 * arena->bytes();
    else if (arena->kind() == artifact::ArenaKind::Transient)
      grows += arena->bytes();
    else if (arena->kind() != artifact::ArenaKind::Sums)
      fixed += arena->bytes();
  }
  if (fixed + grows <= *free)
    return;
  uint64_t batch = largestBatch(artifact, fixed, grows, *free);
  throw Error(ErrorCode::Runtime,
              "the plan takes " + bytesText(fixed + grows) + " of the device's memory, of which " +
                  bytesText(*free) + " are free: " +
                  (batch ? "compile the model for a smaller batch, of less than " +
                               std::to_string(batch + 1) +
                               " (--memory-limit=" + std::to_string(*free) +
                               " finds the largest), or end what else uses the device"
                         : "end what else uses the device, or take a larger one"));
}

} // namespace

Arenas::Arenas(const Artifact &artifact, Device &device)
    : artifact(artifact), device(device),
      arenas(artifact->arenas() ? artifact->arenas()->size() : 0),
      total(device.messageBytes(artifact)) {
  requireRoom(artifact, device);
  device.allocateMessages(artifact);
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
