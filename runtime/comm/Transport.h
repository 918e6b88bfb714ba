// What a set of ranks needs from below: messages between any two of them, and memory that the ranks
// of one host can map.
//
// Two implementations: MPI, and threads of one process. All methods are called from the rank's one
// compute thread.
#pragma once

#include "runtime/comm/Mapping.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

class Transport {
public:
  using Request = uint32_t;

  virtual ~Transport() = default;

  int rank() const { return ownRank; }
  int size() const { return static_cast<int>(hosts.size()); }
  bool sameHost(int peer) const { return hosts[peer] == hosts[ownRank]; }
  const std::vector<int> &hostOfRank() const { return hosts; }
  /// For messages, e.g. "rank 3 on node7".
  virtual std::string describe(int peer) const { return "rank " + std::to_string(peer); }

  /// Starts a message. The memory must stay as it is until test has said true. Messages of one tag
  /// between two ranks arrive in the order in which they were started; lengths agree on both sides.
  virtual Request send(int peer, int tag, std::span<const std::byte> data) = 0;
  virtual Request receive(int peer, int tag, std::span<std::byte> data) = 0;
  /// Moves messages on without blocking; true when this one is complete, and the request is then
  /// gone.
  virtual bool test(Request request) = 0;
  /// A peer of which a message with this tag has come that was not asked for yet. Moves messages
  /// on.
  virtual std::optional<int> senderOf(int tag) = 0;
  /// Grows whenever test has moved a part of a message to its end: then there may be more to move.
  uint64_t moved() const { return movedParts; }

  /// Zeroed memory for the ranks of this host, known to them by `name`, which is set; throws Error
  /// where the host cannot give it.
  virtual std::shared_ptr<Mapping> createSegment(size_t bytes, std::string &name) = 0;
  virtual std::shared_ptr<Mapping> openSegment(const std::string &name, size_t bytes) = 0;
  /// Called by the creator once all local peers have mapped it.
  virtual void unlinkSegment(const std::string &name) noexcept = 0;

  /// Throws Error(Peer) if the run is known to have failed elsewhere.
  virtual void checkRun() {}
  virtual void abort(const std::string &reason) noexcept = 0;

protected:
  /// `hosts[r]` numbers the host of rank r.
  Transport(int rank, std::vector<int> hosts) : ownRank(rank), hosts(std::move(hosts)) {}

  uint64_t movedParts = 0;

private:
  int ownRank;
  std::vector<int> hosts;
};

/// Host of each rank when `ranksPerHost` neighbours are to count as one host.
inline std::vector<int> pretendedHosts(int ranks, int ranksPerHost) {
  std::vector<int> hosts(static_cast<size_t>(ranks));
  for (int r = 0; r < ranks; ++r)
    hosts[r] = r / ranksPerHost;
  return hosts;
}

} // namespace dlc::rt
