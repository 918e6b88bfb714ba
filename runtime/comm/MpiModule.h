// The seam between a program and the module that holds MPI: one versioned C entry.
#pragma once

#include "runtime/core/Collectives.h"
#include "runtime/core/ControlPlane.h"

#include <memory>

namespace dlc::rt {

struct MpiModule {
  /// Changes with this struct and with the virtual methods of control plane and collectives.
  static constexpr unsigned currentVersion = 7;
  static constexpr const char *entry = "dlc_comm_mpi";
  using Entry = const MpiModule *();

  unsigned version;
  std::unique_ptr<ControlPlane> (*create)(int ranksPerHost);
  /// Leftover::removeAll for the files of the module, which has a list of its own.
  void (*removeLeftovers)() noexcept;
};

} // namespace dlc::rt
