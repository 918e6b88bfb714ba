// Collectives between the ranks' devices: the gradients of a step.
//
// A device takes them of a control plane or makes its own. Results depend on the number of ranks
// and on what carries the data, never on buckets. All methods are called from the one compute
// thread, in the same order on every rank. Equivalents: MPI_Iallreduce, ncclAllReduce.
#pragma once

#include "runtime/artifact/artifact_generated.h"
#include "runtime/core/DeviceSpan.h"

#include <cstdint>
#include <span>
#include <string>

namespace dlc::rt {

/// A sum over the ranks, in place, of whole elements at any address of their alignment. They travel
/// as `wire`.
struct CollectiveOperation {
  DeviceSpan memory;
  artifact::DType type = artifact::DType::F32;
  artifact::DType wire = artifact::DType::F32;
};

/// Names an operation in messages about faults: "all-reduce of bucket 2 (conv1.weight, ...) in step
/// 17". `members` must outlive the operation.
struct CollectiveLabel {
  uint32_t bucket = 0;
  uint64_t step = 0;
  std::span<const std::string> members;
};

/// Whoever changes the virtual methods counts MpiModule::currentVersion up.
class Collectives {
public:
  using Ticket = uint32_t;

  virtual ~Collectives() = default;

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
  /// Lends memory that the ranks of this host share, zeroed, 64-byte aligned. Operations are slower
  /// in any other. An operation lies in memory of the same call on every rank, or in other memory
  /// on every rank. Collective, of equal size on all ranks.
  virtual DeviceSpan allocateShared(size_t bytes) = 0;
  /// Takes it back; the process no longer has it, unless an operation is outstanding. Not
  /// collective.
  virtual void releaseShared(DeviceSpan memory) noexcept = 0;
};

} // namespace dlc::rt
