// The control plane of a process that a launcher has started as one of several ranks: mpirun, or
// start.py, whose ranks meet by TCP.
#pragma once

#include "runtime/comm/ControlPlanes.h"
#include "runtime/comm/Launch.h"

#include <cstdlib>
#include <filesystem>

namespace dlc::rt::test {

inline std::unique_ptr<ControlPlane> joinRanks(int ranksPerHost) {
  Launch launch = detectLaunch([](const char *name) { return std::getenv(name); }, false);
  if (launch.tcp)
    return makeTcpControlPlane(*launch.tcp, 30, ranksPerHost);
  // Programs find modules as ../lib relative to themselves.
  auto program = std::filesystem::read_symlink("/proc/self/exe");
  return makeMpiControlPlane(program.parent_path().parent_path() / "lib" / "dlc_comm_mpi.so",
                             ranksPerHost);
}

} // namespace dlc::rt::test
