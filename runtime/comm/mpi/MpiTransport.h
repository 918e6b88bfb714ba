// Messages by MPI, shared memory by POSIX. MPI also starts the processes.
#pragma once

#include "runtime/comm/HostTransport.h"

#include <mpi.h>

#include <vector>

namespace dlc::rt {

/// MPI initialised, with what it says about the ranks. Finalises MPI unless messages are still in
/// flight or an exception is passing through: finalising waits for peers that may never come.
class MpiEnvironment {
public:
  explicit MpiEnvironment(int ranksPerHost);
  MpiEnvironment(const MpiEnvironment &) = delete;
  MpiEnvironment &operator=(const MpiEnvironment &) = delete;
  ~MpiEnvironment();

  MPI_Comm communicator = MPI_COMM_NULL;
  int rank = 0;
  std::vector<int> hosts;         // number of each rank's host
  std::vector<std::string> names; // of each rank's host
  bool idle = true;               // no message in flight

private:
  std::vector<int> askHosts(int size) const;
  std::vector<std::string> askNames(int size) const;

  int exceptionsAtStart;
};

class MpiTransport final : private MpiEnvironment, public HostTransport {
public:
  explicit MpiTransport(int ranksPerHost);
  ~MpiTransport() override;

  Request send(int peer, int tag, std::span<const std::byte> data) override;
  Request receive(int peer, int tag, std::span<std::byte> data) override;
  bool test(Request request) override;
  std::optional<int> senderOf(int tag) override;

  void abort(const std::string &reason) noexcept override;

private:
  /// A message on its way in parts, which end in order.
  struct Parts {
    std::vector<MPI_Request> list;
    size_t done = 0;
  };

  template <typename Byte, typename Start>
  Request begin(std::span<Byte> data, const char *doing, Start start);

  std::vector<Parts> requests; // by Request; empty where free
  std::vector<Request> freeRequests;
};

} // namespace dlc::rt
