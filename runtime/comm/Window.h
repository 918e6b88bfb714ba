// One block of memory per rank, of equal size, each mapped by all ranks of its host.
#pragma once

#include "runtime/comm/Mapping.h"
#include "runtime/comm/SmallCollectives.h"
#include "runtime/comm/Transport.h"
#include "runtime/core/DeviceSpan.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

class Window {
public:
  /// Collective. `prepare` fills the own block before peers see it. Where a host cannot share
  /// memory its ranks have private blocks and see none but their own; `refusal` then says why, on
  /// every rank.
  Window(Transport &transport, SmallCollectives &collectives, size_t bytes, double timeout,
         const std::function<void(std::span<std::byte>)> &prepare = {});

  std::span<std::byte> own() const { return mappings[ownRank]->bytes(); }
  /// Null where the rank's block is not visible here.
  std::byte *base(int rank) const {
    return mappings[rank] ? mappings[rank]->bytes().data() : nullptr;
  }
  /// Whether memory lies in the own block.
  bool contains(DeviceSpan memory) const;
  /// Gives all memory back. The window then contains nothing.
  void release() noexcept;

  const std::string &refusal() const { return why; }

private:
  int ownRank;
  std::vector<std::shared_ptr<Mapping>> mappings; // by rank
  std::string why;
};

} // namespace dlc::rt
