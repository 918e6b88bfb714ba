// One asynchronous all-reduce, as a state machine that never blocks.
//
// Peers whose memory is visible are read and written directly, the counters in the control blocks
// saying when; all others get messages. Which peers are which may be mixed, and changes no bit.
#pragma once

#include "runtime/comm/ControlBlock.h"
#include "runtime/comm/Messages.h"
#include "runtime/comm/PeerWatch.h"
#include "runtime/comm/SliceSum.h"
#include "runtime/comm/Slices.h"
#include "runtime/comm/Window.h"
#include "runtime/core/Collectives.h"

#include <string>
#include <vector>

namespace dlc::rt {

/// What an all-reduce works in; outlives it. `blocks[r]` is null unless rank r's block is visible.
struct AllReduceContext {
  Transport &transport;
  const std::vector<ControlBlock *> &blocks;
  const std::vector<Window> &windows;
};

class SliceAllReduce {
public:
  explicit SliceAllReduce(AllReduceContext context) : context(context) {}

  /// Becomes operation `sequence`, counted from 0 in the order of starting. Buffers are kept from
  /// the operation before, so that a step allocates only the first time.
  void prepare(uint64_t sequence, const CollectiveOperation &operation,
               const CollectiveLabel &label);

  uint64_t number() const { return sequence; }
  bool posted() const { return isPosted; }
  /// Publishes the operand and starts all messages that need no sum. Operations are posted in order
  /// and at most ControlBlock::ringSize at a time.
  void post();

  /// Moves a posted operation; sums at most `budget` elements of the own slice, taken off it. True
  /// when complete. Own slices are summed in the order of operations.
  bool advance(size_t &budget);

  std::string describe() const { return rt::describe(label); }
  Lateness lateness();

private:
  int rank() const { return context.transport.rank(); }
  int size() const { return context.transport.size(); }
  Slice slice(int of) const { return sliceOf(operand.elements, size(), of); }
  bool rounded() const { return operand.wire == artifact::DType::BF16; }

  void publish();
  float *peerData(int peer) const;
  void checkAgreement(int peer) const;

  void sendContributions();
  void receiveContributions();
  void receiveSums();
  void unpackSums();
  void sendSums();
  std::span<const std::byte> outgoing(Slice part) const;

  bool peersStarted() const;
  bool peersReduced() const;
  void bindContributions();
  void sumSome(size_t &budget);

  struct Operand {
    float *data = nullptr;
    size_t elements = 0;
    artifact::DType wire = artifact::DType::F32;
  };

  AllReduceContext context;
  uint64_t sequence = 0;
  Operand operand;
  CollectiveLabel label;
  int window = -1; // of the operand's memory, -1: private

  bool isPosted = false;
  bool bound = false;
  bool reduced = false;
  size_t summed = 0; // elements of the own slice

  std::vector<int> messagePeers; // from the next rank on
  Messages contributionsOut;
  Messages contributionsIn;
  Messages sumsOut;
  Messages sumsIn;
  std::vector<std::byte> received; // the own slice's contributions, one block per message peer
  std::vector<uint16_t> packed;    // BF16: what goes out, indexed like the operand
  std::vector<uint16_t> arrived;   // BF16: other ranks' sums, indexed like the operand
  std::vector<Contribution> contributions; // the own slice's, in rank order
  std::vector<float *> destinations;       // the own slice in all visible memory
};

} // namespace dlc::rt
