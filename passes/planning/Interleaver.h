// Where the updates and the large gradients of a program stand among the rest of a step.
//
// The memory of a bucket can be used again once it is applied, so updates come where their bucket
// has arrived, and gradients that take much memory where the wire is free for them.
#pragma once

#include "passes/planning/OverlapSimulator.h"
#include "passes/planning/ProgramScheduler.h"

#include "llvm/ADT/BitVector.h"

#include <deque>
#include <span>

namespace dlc {

/// One interleaving of an order: walks it with the clocks of compute and wire, once for each pace
/// at which the wire may run beside compute, and decides at each point what comes next.
class Interleaver {
public:
  /// The choices that an order leaves open.
  struct Choice {
    size_t inFlight; // so many large gradients at most are there at a time
    size_t pace;     // number of the one by which buckets arrive
    size_t atEnd;    // so many updates stay at the end; the others come where their bucket arrives
  };

  Interleaver(const ProgramScheduler &program, llvm::ArrayRef<mlir::Operation *> order,
              std::span<const OverlapSimulator> paces, Choice choice);

  std::vector<mlir::Operation *> run();
  /// Nanoseconds that the placed ops take, by pace.
  std::vector<uint64_t> totals() const;

private:
  using Facts = ProgramScheduler::Facts;

  /// What is done with a bucket once it has arrived.
  struct Update {
    llvm::SmallVector<const Facts *> ops;
    size_t ready = 0;     // so many of them depend on nothing any more
    size_t missing = 0;   // starts that are not yet placed
    uint64_t arrived = 0; // all its buckets
    size_t rank = 0;      // place among the updates by their last start, from 1
  };
  struct Clocks {
    uint64_t compute = 0, wire = 0;
    llvm::DenseMap<mlir::Operation *, uint64_t> arrival; // by wait
  };

  static bool isWait(const Facts *op);
  static bool isStartOfLargeGradient(const Facts &start);
  Update *nextUpdate();
  bool isReady(Update &update) const;
  bool isReady(const Facts &op) const;
  bool wireIdlesWithin(uint64_t time) const;
  void enqueue(Update &update);
  void put(const Facts &op);
  void putMain();
  void putGradient();
  void put(Update &update);

  const ProgramScheduler &program;
  std::span<const OverlapSimulator> paces;
  Choice choice;
  std::deque<const Facts *> main, gradients; // still to come
  std::vector<Update> updates;               // by bucket plus 1
  std::vector<Update *> started;             // in the order of their last starts
  size_t updateCount = 0, startedCount = 0;
  size_t inFlight = 0;        // large gradients that are not yet applied
  std::vector<Clocks> clocks; // by pace
  llvm::BitVector placed;     // by position
  std::vector<mlir::Operation *> result;
};

} // namespace dlc
