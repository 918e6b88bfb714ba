// Collectives between the ranks of a run.
//
// One algorithm for every transport: slice r of a message belongs to rank r, which adds the N
// contributions in rank order 0..N-1 in f32 and hands the sum to all. So results do not depend on
// bucket, slice or transport, only on N. All methods are called from the one compute thread, in the
// same order on every rank. Equivalents: MPI_Iallreduce, ncclAllReduce.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

/// Names an operation in messages about faults: "all-reduce of bucket 2 (conv1.weight, ...) in step
/// 17". `members` must outlive the operation.
struct CollectiveLabel {
  uint32_t bucket = 0;
  uint64_t step = 0;
  std::span<const std::string> members;
};

/// Whoever changes the virtual methods counts MpiModule::currentVersion up.
class Communicator {
public:
  using Ticket = uint32_t;

  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int localRank() const = 0; // among the ranks of this host
  virtual int localSize() const = 0;

  /// Memory for the gradients arena, zeroed, 64-byte aligned, page aligned where shared with local
  /// peers. Collective, of equal size on all ranks. Owned by the communicator.
  virtual std::span<std::byte> allocateShared(size_t bytes) = 0;

  /// Starts the sum over ranks, in place, of `elements` f32 at `data`, which is 4-byte aligned and
  /// either in allocateShared memory on every rank or on none (legal and slower). The memory must
  /// not be touched until wait returns. `wire` F32 or BF16: with BF16 both the contributions and
  /// the sum are rounded to bf16, to nearest even; one rank alone rounds nothing.
  virtual Ticket startAllReduce(float *data, size_t elements, artifact::DType wire,
                                const CollectiveLabel &label) = 0;
  /// Moves outstanding operations without blocking. Called between kernels.
  virtual void progress() = 0;
  /// True once the operation is complete, so that wait would not block. Moves nothing; for traces.
  virtual bool isComplete(Ticket ticket) const = 0;
  /// Blocks until the operation is complete; throws Error(Peer) naming bucket, layers, step and
  /// late ranks after the timeout, or the peer that died. After a timeout it may be called again.
  virtual void wait(Ticket ticket) = 0;

  /// Small blocking operations of the host, outside of the step's buckets. Sums are in rank order.
  /// They throw as wait does, naming what was being done: `doing`, as in "sum of the metrics of
  /// step 17". After that the communicator is good for abort alone.
  virtual void allReduceSum(std::span<double> values, const std::string &doing) = 0;
  virtual std::vector<std::vector<std::byte>> allGather(std::span<const std::byte> mine,
                                                        const std::string &doing) = 0;
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  virtual void barrier(const std::string &doing) = 0;
  /// Ends all peers within seconds, silently: the caller has said why. With MPI this does not
  /// return, so it is for the one catch in main, before the communicator is destroyed.
  virtual void abort(const std::string &reason) noexcept = 0;

  /// Seconds after which a collective that does not complete is an error.
  void setTimeout(double seconds) { timeoutSeconds = seconds; }

protected:
  double timeoutSeconds = 300;
};

} // namespace dlc::rt
