// The communicator of every run with peers, over whichever transport.
#pragma once

#include "runtime/comm/SliceAllReduce.h"
#include "runtime/comm/SmallCollectives.h"
#include "runtime/core/Communicator.h"

#include <memory>
#include <vector>

namespace dlc::rt {

class PeerCommunicator final : public Communicator {
public:
  /// Collective.
  explicit PeerCommunicator(std::unique_ptr<Transport> transport);
  PeerCommunicator(const PeerCommunicator &) = delete;
  PeerCommunicator &operator=(const PeerCommunicator &) = delete;
  ~PeerCommunicator() override;

  int rank() const override { return transport->rank(); }
  int size() const override { return transport->size(); }
  int localRank() const override;
  int localSize() const override;

  std::span<std::byte> allocateShared(size_t bytes) override;
  Ticket startAllReduce(float *data, size_t elements, artifact::DType wire,
                        const CollectiveLabel &label) override;
  void progress() override;
  bool isComplete(Ticket ticket) const override { return !find(ticket); }
  void wait(Ticket ticket) override;

  void allReduceSum(std::span<double> values, const std::string &doing) override;
  std::vector<std::vector<std::byte>> allGather(std::span<const std::byte> mine,
                                                const std::string &doing) override;
  void broadcast(std::span<std::byte> data, int root) override;
  void barrier(const std::string &doing) override;
  void abort(const std::string &reason) noexcept override;

private:
  /// A window of `bytes` per rank; says once, on rank 0, if some host cannot share memory.
  Window share(size_t bytes, const std::function<void(std::span<std::byte>)> &prepare = {});
  void postInOrder();
  SliceAllReduce *find(Ticket ticket) const;
  /// As progress; true if a piece of a sum was computed, so that more is likely to be ready.
  bool advance();

  std::unique_ptr<Transport> transport;
  PeerWatch watch;
  SmallCollectives collectives;
  bool refusalReported = false;
  Window control;
  std::vector<ControlBlock *> blocks; // by rank, null where not visible
  std::vector<Window> windows;        // in the order of allocateShared

  uint64_t startedCount = 0;
  std::vector<std::unique_ptr<SliceAllReduce>> outstanding; // in the order of starting
  std::vector<std::unique_ptr<SliceAllReduce>> idle;        // for reuse
};

} // namespace dlc::rt
