// The entry of lib/dlc_comm_mpi.so: all that needs MPI is in this module, so that programs run
// without.
#include "runtime/comm/MpiModule.h"
#include "runtime/comm/PeerControlPlane.h"
#include "runtime/comm/mpi/MpiTransport.h"
#include "runtime/core/Leftover.h"

namespace {

std::unique_ptr<dlc::rt::ControlPlane> create(int ranksPerHost) {
  return std::make_unique<dlc::rt::PeerControlPlane>(
      std::make_unique<dlc::rt::MpiTransport>(ranksPerHost));
}

} // namespace

extern "C" __attribute__((visibility("default"))) const dlc::rt::MpiModule *dlc_comm_mpi() {
  static const dlc::rt::MpiModule module{dlc::rt::MpiModule::currentVersion, create,
                                         dlc::rt::Leftover::removeAll};
  return &module;
}
