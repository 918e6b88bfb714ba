// The GPUs of all ranks, which add up gradients among themselves.
//
// NCCL adds in an order of its own, which depends on the number of ranks, on where they are and on
// its version: results have equal bits where these are equal. NVLink SHARP's sums are not used
// unless NCCL_ALGO asks for them: their bits differ from host to host and from run to run.
//
// What travels as bf16 is added here, in the order of the ranks, as HostCollectives has it: NCCL
// carries contributions to who adds a slice, and its sum to all.
#pragma once

#include "runtime/core/Collectives.h"
#include "runtime/core/ControlPlane.h"
#include "runtime/cuda/CudaContext.h"
#include "runtime/cuda/WireKernels.h"
#include "runtime/cuda/libraries/Nccl.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dlc::rt {

class NcclGroup {
public:
  /// Joins the ranks, each with a GPU of its own. Collective. Throws Error(Runtime) if there is no
  /// library or two ranks have one GPU, Error(Peer) if a rank has died or not all have come after
  /// the control plane's timeout. Both outlive it.
  NcclGroup(ControlPlane &control, const CudaContext &context);
  ~NcclGroup();

  /// Registers memory with NCCL, on all ranks, before collectives in it are started. It outlives
  /// the group. What is registered may be added up in another order, so captured collectives and
  /// others are treated alike: NCCL does not register by itself what a graph captures.
  void registerMemory(DeviceSpan memory);
  /// Bytes that an all-reduce works in beside its operand, on every rank.
  uint64_t workBytes(size_t elements, artifact::DType wire) const;
  /// Before what travels as bf16 is started: memory, as large as the largest takes it, which
  /// is registered here.
  void workIn(DeviceSpan memory);
  /// Adds up f32 on all ranks, in the order of the stream, or in what it captures. All that travel
  /// as bf16 are on one stream, since they work in the same memory.
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
  Owned<nccl::Communicator> join(const nccl::UniqueId &id);
  void startRounded(DeviceSpan operand, cudart::Stream stream);
  void exchange(DeviceSpan slices, DeviceSpan contributions, size_t each, cudart::Stream stream);
  void requireRun();
  void hearOfPeers();

  ControlPlane &control;
  const CudaContext &context;
  const cudart::Functions &cuda;
  const nccl::Functions &library;
  Owned<nccl::Communicator> communicator;
  std::vector<void *> registrations;
  uint64_t numbered = 0;
  std::optional<WireKernels> kernels; // where there is work memory
  DeviceSpan work;
};

} // namespace dlc::rt
