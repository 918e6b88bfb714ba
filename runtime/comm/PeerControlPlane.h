// The control plane of every run with peers, over whichever transport.
#pragma once

#include "runtime/comm/SliceCollectives.h"
#include "runtime/core/ControlPlane.h"

#include <memory>
#include <vector>

namespace dlc::rt {

class PeerControlPlane final : public ControlPlane {
public:
  /// Collective.
  explicit PeerControlPlane(std::unique_ptr<Transport> transport);
  PeerControlPlane(const PeerControlPlane &) = delete;
  PeerControlPlane &operator=(const PeerControlPlane &) = delete;
  ~PeerControlPlane() override;

  int rank() const override { return transport->rank(); }
  int size() const override { return transport->size(); }
  int localRank() const override;
  int localSize() const override;

  void sum(std::span<double> values, const std::string &doing) override;
  std::vector<std::vector<std::byte>> allGather(std::span<const std::byte> mine,
                                                const std::string &doing) override;
  void broadcast(std::span<std::byte> data, int root) override;
  void barrier(const std::string &doing) override;
  void check() override { transport->checkRun(); }
  [[noreturn]] void giveUp(Standing standing,
                           const std::function<std::string(uint64_t)> &nameOf) override;
  bool hasPeerGivenUp() override { return standings.isAsked(); }
  void abort(const std::string &reason) noexcept override;

  HostCollectives &hostCollectives() override { return collectives; }

private:
  std::unique_ptr<Transport> transport;
  PeerWatch watch;
  Standings standings;
  SmallCollectives exchanges;
  SliceCollectives collectives;
};

} // namespace dlc::rt
