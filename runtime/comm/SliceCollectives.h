// The collectives of every run with peers: the outstanding all-reduces, and the memory that the
// ranks of this host share.
#pragma once

#include "runtime/comm/SliceAllReduce.h"
#include "runtime/comm/SmallCollectives.h"
#include "runtime/core/Collectives.h"
#include "runtime/core/ControlPlane.h"

#include <memory>
#include <vector>

namespace dlc::rt {

class SliceCollectives final : public HostCollectives {
public:
  /// Collective. Lets `watch` observe the ranks of this host. All must outlive the object.
  SliceCollectives(const ControlPlane &control, Transport &transport, PeerWatch &watch,
                   SmallCollectives &exchanges);
  SliceCollectives(const SliceCollectives &) = delete;
  SliceCollectives &operator=(const SliceCollectives &) = delete;

  /// Tells the ranks of this host that this one ends.
  void leave() noexcept;

  DeviceSpan allocateShared(size_t bytes) override;
  void registerMemory(DeviceSpan) override {}
  void unregisterMemory(DeviceSpan memory) noexcept override;
  Ticket start(const CollectiveOperation &operation, const CollectiveLabel &label) override;
  void progress() override;
  bool isComplete(Ticket ticket) const override { return !find(ticket); }
  void wait(Ticket ticket) override;

private:
  /// A window of `bytes` per rank; says once, on rank 0, if some host cannot share memory.
  Window share(size_t bytes, const std::function<void(std::span<std::byte>)> &prepare = {});
  void postInOrder();
  SliceAllReduce *find(Ticket ticket) const;
  /// Like progress; true if a piece of a sum was computed, so that more is likely to be ready.
  bool advance();

  const ControlPlane &control;
  Transport &transport;
  PeerWatch &watch;
  SmallCollectives &exchanges;
  bool refusalReported = false;
  Window blockWindow;
  std::vector<ControlBlock *> blocks; // by rank, null where not visible
  std::vector<Window> windows;        // in the order of allocateShared

  uint64_t startedCount = 0;
  std::vector<std::unique_ptr<SliceAllReduce>> outstanding; // in the order of starting
  std::vector<std::unique_ptr<SliceAllReduce>> idle;        // for reuse
};

} // namespace dlc::rt
