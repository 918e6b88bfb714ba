// The seam between a program and the module that holds MPI: one versioned C entry.
#pragma once

#include "runtime/core/Communicator.h"

namespace dlc::rt {

struct MpiModule {
  /// Changes with this struct and with Communicator's virtual methods.
  static constexpr unsigned currentVersion = 4;
  static constexpr const char *entry = "dlc_comm_mpi";
  using Entry = const MpiModule *();

  unsigned version;
  std::unique_ptr<Communicator> (*create)(int ranksPerHost);
  /// Leftover::removeAll for the files of the module, which has a list of its own.
  void (*removeLeftovers)() noexcept;
};

} // namespace dlc::rt
