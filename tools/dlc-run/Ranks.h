// How this process came to be: alone, or one of the ranks that mpirun or srun started.
#pragma once

#include "runtime/comm/Communicator.h"

#include <memory>

namespace dlc::run {

/// True under mpirun or srun.
bool isLaunched();

/// MPI's communicator if isLaunched, else that of a single rank. Throws Error if the environment
/// tells of more ranks than there are.
std::unique_ptr<rt::Communicator> makeCommunicator(double timeoutSeconds);

} // namespace dlc::run
