// The control planes that there are: of one rank, of threads, of MPI, of TCP.
#pragma once

#include "runtime/comm/Rendezvous.h"
#include "runtime/core/Collectives.h"
#include "runtime/core/ControlPlane.h"

#include <functional>
#include <memory>

namespace dlc::rt {

/// One rank, no peers.
std::unique_ptr<ControlPlane> makeSingleControlPlane();

/// Runs `body` on `ranks` threads of this process, each with its control plane; rethrows the first
/// error. For tests. `ranksPerHost` > 0 pretends that rank r lives on host r / ranksPerHost, so
/// that 1 leaves messages alone and no shared memory; 0 puts all on one host.
void runInProcess(int ranks, const std::function<void(ControlPlane &)> &body, int ranksPerHost = 0);

/// MPI, loaded on demand from the module dlc_comm_mpi.so; the calling thread is the one that makes
/// all MPI calls from then on. `ranksPerHost` as above; 0 asks MPI.
std::unique_ptr<ControlPlane> makeMpiControlPlane(const std::string &modulePath,
                                                  int ranksPerHost = 0);

/// TCP, which needs no MPI. Throws Error(Peer) if ranks have not come after so many seconds, which
/// are the control plane's timeout, too.
std::unique_ptr<ControlPlane> makeTcpControlPlane(const MeetingPlace &place, double seconds,
                                                  int ranksPerHost = 0);

} // namespace dlc::rt
