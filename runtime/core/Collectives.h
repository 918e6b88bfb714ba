// Collectives between the ranks' devices: the gradients of a step.
//
// A device makes them of a control plane. Memory stays its owner's, who registers it. Results
// depend on the number of ranks and on what carries the data, never on buckets. All methods are
// called from the one compute thread, in the same order on every rank. Equivalents: MPI_Iallreduce,
// ncclCommRegister, ncclAllReduce.
#pragma once

#include "runtime/artifact/artifact_generated.h"
#include "runtime/core/DeviceSpan.h"

#include <cstdint>
#include <span>
#include <string>

namespace dlc::rt {

/// Whole elements at any address of their alignment, reduced in place. They travel as `wire`.
struct CollectiveOperation {
  DeviceSpan memory;
  artifact::CollectiveKind kind = artifact::CollectiveKind::AllReduceSum;
  artifact::DType type = artifact::DType::F32;
  artifact::DType wire = artifact::DType::F32;
  artifact::Stream stream = artifact::Stream::Comm; // whose order it joins, on devices with streams
};

/// Names an operation in messages about faults: "all-reduce of bucket 2 (conv1.weight, ...) in step
/// 17", counted from 1. `members` must outlive the operation.
struct CollectiveLabel {
  uint32_t bucket = 0;
  uint64_t step = 0;
  std::span<const std::string> members;
};

std::string describe(const CollectiveLabel &label);

/// Whoever changes the virtual methods counts MpiModule::currentVersion up.
class Collectives {
public:
  using Ticket = uint32_t;

  virtual ~Collectives() = default;

  /// Announces memory in which operations will lie; they are slower elsewhere. Collective, of equal
  /// size on all ranks; an operation lies in memory registered together on every rank or on none.
  virtual void registerMemory(DeviceSpan memory) = 0;
  /// Before the owner gives registered memory back. Not collective.
  virtual void unregisterMemory(DeviceSpan memory) noexcept = 0;

  /// Starts an operation. Its memory must not be touched until it is complete.
  virtual Ticket start(const CollectiveOperation &operation, const CollectiveLabel &label) = 0;
  /// Moves outstanding operations without blocking. Called between kernels.
  virtual void progress() = 0;
  /// True once the operation is complete, so that wait would not block. Moves nothing; for traces.
  virtual bool isComplete(Ticket ticket) const = 0;
  /// Blocks until the operation is complete; throws Error(Peer) naming bucket, layers, step and
  /// late ranks after the timeout, or the peer that died. After a timeout it may be called again.
  virtual void wait(Ticket ticket) = 0;
};

/// Collectives of memory that the host reaches, of f32.
///
/// One algorithm whatever carries the data: slice r of a message belongs to rank r, which adds the
/// N contributions in rank order 0..N-1 in f32 and hands the sum to all. So results depend on N
/// alone. With wire BF16 both the contributions and the sum are rounded to bf16, to nearest even;
/// one rank alone rounds nothing.
class HostCollectives : public Collectives {
public:
  /// Registered memory that the ranks of this host share, zeroed, 64-byte aligned, the caller's
  /// until unregisterMemory. Collective, of equal size on all ranks. Memory of another origin
  /// cannot be shared any more: registering it changes nothing.
  virtual DeviceSpan allocateShared(size_t bytes) = 0;
};

} // namespace dlc::rt
