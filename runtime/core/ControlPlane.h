// What the ranks of a run tell each other on the host: who they are, and small blocking exchanges
// outside of the step's buckets.
//
// Ranks call the collective methods in the same order. All methods are called from the one compute
// thread, but for abort, if that thread does not come back. Equivalents: MPI_Allgather, MPI_Bcast,
// MPI_Barrier, MPI_Abort.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

class HostCollectives;

/// Whoever changes the virtual methods counts MpiModule::currentVersion and BackEnd's up.
class ControlPlane {
public:
  virtual ~ControlPlane() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int localRank() const = 0; // among the ranks of this host
  virtual int localSize() const = 0;

  /// Exchanges throw Error(Peer) after the timeout, naming late ranks and what was being done:
  /// `doing`, as in "sum of the metrics of step 17". After that abort alone may be called.
  /// Sums are in rank order.
  virtual void sum(std::span<double> values, const std::string &doing) = 0;
  virtual std::vector<std::vector<std::byte>> allGather(std::span<const std::byte> mine,
                                                        const std::string &doing) = 0;
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  virtual void barrier(const std::string &doing) = 0;
  /// Throws Error(Peer) if the run is known to have failed elsewhere: for those who wait otherwise.
  virtual void check() {}

  /// Of collectives that go another way than these exchanges, as between GPUs, and that all ranks
  /// start in the same order: how many this rank has started, and how many of those, at least, are
  /// complete.
  struct Standing {
    uint64_t completed, started;
  };
  /// For when one does not complete within the timeout. Ranks tell each other where they stand;
  /// throws Error(Peer) that names those that are behind, or do not tell within seconds, and the
  /// first collective that one of them has not started: `nameOf` its number, counted from 0.
  [[noreturn]] virtual void giveUp(Standing standing,
                                   const std::function<std::string(uint64_t)> &nameOf) = 0;
  /// True if another rank has given up and waits for this one to.
  virtual bool hasPeerGivenUp() { return false; }

  /// Ends all peers within seconds, silently: the caller has said why. With MPI this does not
  /// return, so it is for the one catch in main, before the control plane is destroyed.
  virtual void abort(const std::string &reason) noexcept = 0;

  /// Collectives that go the way of these exchanges, for devices whose memory the host reaches.
  virtual HostCollectives &hostCollectives() = 0;

  /// Seconds after which an exchange or a collective that does not complete is an error.
  void setTimeout(double seconds) { timeoutSeconds = seconds; }
  double timeout() const { return timeoutSeconds; }

private:
  double timeoutSeconds = 300;
};

} // namespace dlc::rt
