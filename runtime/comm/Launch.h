// How this process was started: alone, or by a launcher as one of several ranks.
//
// N processes that take themselves for N single runs would train N times and overwrite each other's
// results: where the environment promises several ranks and MPI does not deliver them, that is an
// error that names the fix.
#pragma once

#include "runtime/core/ControlPlane.h"

#include <functional>
#include <memory>
#include <string>

namespace dlc::rt {

/// Like getenv: null where the variable is not set.
using Environment = std::function<const char *(const char *)>;

struct Launch {
  bool mpi = false;   // an MPI launcher started this process
  int ranks = 1;      // promised by it; 0: it does not say
  std::string source; // where the promise stands, e.g. "OMPI_COMM_WORLD_SIZE=4"
};

/// Reads the variables of Open MPI, PMIx, PMI, Slurm, torchrun and TensorFlow. Throws
/// Error(BadInput) if they promise several ranks but no MPI launcher is at work. `ranksGiven`: the
/// user chose the number of ranks, so that what an allocation would allow does not count.
Launch detectLaunch(const Environment &environment, bool ranksGiven);

/// The control plane for a launch; throws Error(BadInput) if MPI has not as many ranks as promised.
std::unique_ptr<ControlPlane> makeControlPlane(const Launch &launch,
                                               const std::string &mpiModulePath);

} // namespace dlc::rt
