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
  /// library or two ranks have one GPU. Both outlive it.
  NcclGroup(ControlPlane &control, const CudaContext &context);
  ~NcclGroup();
  NcclGroup(const NcclGroup &) = delete;
  NcclGroup &operator=(const NcclGroup &) = delete;

  /// Throws Error(Artifact) if it travels as another type than f32, which start does not do. Those
  /// of artifacts are sums of f32.
  static void requireWire(const CollectiveOperation &operation);
  /// Adds up on all ranks, in the order of the stream, or in what it captures.
  void start(const CollectiveOperation &operation, cudart::Stream stream);
  /// Waits for what may wait for peers. Throws Error(Peer) after the control plane's timeout, or if
  /// NCCL has lost one; what runs on the device has been told to end then.
  void await(cudart::Event event, const std::string &doing);

  /// Version and settings, which its sums depend on.
  std::string platform() const;

  /// Tells what runs on the device to end: nobody may wait for peers any more.
  void abandon() noexcept;

private:
  void requireRun();
  [[noreturn]] void fail(const std::string &reason);

  ControlPlane &control;
  const CudaContext &context;
  const cudart::Functions &cuda;
  const nccl::Functions &library;
  nccl::Communicator communicator = nullptr;
};

} // namespace dlc::rt
