// How this process was started: alone, or by a launcher as one of several ranks.
//
// Ranks of mpirun, and of srun with its plugin, find each other by MPI; those of torchrun, of plain
// srun and of dlc-run itself by TCP. N processes that take themselves for N single runs would train
// N times and overwrite each other's results: where the environment promises several ranks and says
// not which one this is, that is an error that names the fix.
#pragma once

#include "runtime/comm/Rendezvous.h"
#include "runtime/core/ControlPlane.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlc::rt {

/// Like getenv: null where the variable is not set.
using Environment = std::function<const char *(const char *)>;

struct Launch {
  bool mpi = false;                // an MPI launcher started this process
  std::optional<MeetingPlace> tcp; // one of the others did
  int ranks = 1;                   // promised by it; 0: it does not say
  std::string source;              // where the promise stands, e.g. "OMPI_COMM_WORLD_SIZE=4"

  bool isRank() const { return mpi || tcp; }
};

/// Reads the variables of Open MPI, PMIx, PMI, Slurm, torchrun, TensorFlow and launchVariables.
/// Throws Error(BadInput) if they promise several ranks but no launcher is at work. `ranksGiven`:
/// the user chose the number of ranks, so that what others would allow does not count.
Launch detectLaunch(const Environment &environment, bool ranksGiven);

/// "NAME=VALUE" of what tells a process that dlc-run has started it as a rank.
std::vector<std::string> launchVariables(const MeetingPlace &place);

/// The control plane for a launch. Throws Error(BadInput) if MPI has not as many ranks as promised,
/// Error(Peer) if ranks have not come within so many seconds, its timeout from then on.
std::unique_ptr<ControlPlane> makeControlPlane(const Launch &launch,
                                               const std::string &mpiModulePath, double timeout);

} // namespace dlc::rt
