// Tells which peer keeps the others waiting, and why: late, ended or dead.
#pragma once

#include "runtime/artifact/Error.h"
#include "runtime/comm/ControlBlock.h"
#include "runtime/comm/Transport.h"

#include <chrono>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

/// The ranks that an operation waits for and what they have not done, e.g. "has not started it"; no
/// rank, where all have done their part.
struct Lateness {
  std::vector<int> ranks;
  std::string failing;
};

class PeerWatch {
public:
  explicit PeerWatch(Transport &transport) : transport(transport) {}

  /// Observes local peers from now on; `blocks[r]` is null for others. Peers in another process
  /// namespace, whose process numbers mean nothing here, are not looked up.
  void observe(std::span<ControlBlock *const> blocks);

  /// Throws Error(Peer) if the run has failed or an awaited rank of this host is gone for good.
  void check(const Lateness &late, const std::string &doing);

  /// The error that names the late ranks; without any, the network is held up.
  Error timeout(const Lateness &late, const std::string &doing, double seconds) const;

private:
  struct Peer {
    const ControlBlock *block = nullptr;
    bool processVisible = false;
    bool gone = false;
    std::chrono::steady_clock::time_point goneSince;
  };

  std::string describe(int rank) const;

  Transport &transport;
  std::vector<Peer> peers;
};

} // namespace dlc::rt
