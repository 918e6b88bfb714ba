// The GPUs of all ranks, which add up gradients among themselves.
//
// NCCL adds in an order of its own, which depends on the number of ranks, on where they are and on
// its version: results have equal bits where these are equal. NVLink SHARP's sums are not used
// unless NCCL_ALGO asks for them: their bits differ from host to host and from run to run.
#pragma once

#include "runtime/core/Collectives.h"
#include "runtime/core/ControlPlane.h"
#include "runtime/cuda/CudaContext.h"
#include "runtime/cuda/libraries/Nccl.h"

namespace dlc::rt {

class NcclGroup {
public:
  /// Joins the ranks, each with a GPU of its own. Collective. Throws Error(Runtime) if there is no
  /// library or two ranks have one GPU, Error(Peer) if a rank has died or not all have come after
  /// the control plane's timeout. Both outlive it.
  NcclGroup(ControlPlane &control, const CudaContext &context);
  ~NcclGroup();
  NcclGroup(const NcclGroup &) = delete;
  NcclGroup &operator=(const NcclGroup &) = delete;

  /// Throws Error(Artifact) if it travels as another type than f32, which start does not do. Those
  /// of artifacts are sums of f32.
  static void requireWire(const CollectiveOperation &operation);
  /// Adds up on all ranks, in the order of the stream, or in what it captures.
  void start(const CollectiveOperation &operation, cudart::Stream stream);
  /// Waits for what may wait for peers. Throws Error(Peer) if one is lost; what runs on the device
  /// has been told to end then. False after the control plane's timeout, or if a peer has given up.
  bool await(cudart::Event event, const std::string &doing);
  /// Throws Error(Peer) as ControlPlane::giveUp does; what runs on the device has been told to end.
  [[noreturn]] void giveUp(ControlPlane::Standing standing,
                           const std::function<std::string(uint64_t)> &nameOf);

  /// Version and settings, which its sums depend on.
  std::string platform() const;

  /// Tells what runs on the device to end: nobody may wait for peers any more.
  void abandon() noexcept;

  /// Numbers the collectives of a run that begins; returns the first one's.
  uint64_t number(size_t collectives);

private:
  nccl::Communicator join(const nccl::UniqueId &id);
  void requireRun();
  void hearOfPeers();

  ControlPlane &control;
  const CudaContext &context;
  const cudart::Functions &cuda;
  const nccl::Functions &library;
  nccl::Communicator communicator = nullptr;
  uint64_t numbered = 0;
};

} // namespace dlc::rt
