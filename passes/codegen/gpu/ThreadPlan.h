// How the threads of a block share an item of a stage.
//
// A thread computes `lanes` consecutive iterations of the innermost loop at a time, 16 bytes of its
// widest operand where the loop allows it, and consecutive threads take consecutive lanes, so that
// each access of a warp, of narrower operands too, is one of whole sectors side by side. Kept
// iterations are shared first. Where a reduction has more threads than those, its terms are shared,
// too, and the parts are added as a tree in shared memory, in an order that depends on the plan
// alone. Of what lies across the loops, which goes through shared memory, threads take one bank's
// worth each: consecutive ones need different banks.
#pragma once

#include "passes/codegen/ClusterPlan.h"

namespace dlc {

struct ThreadPlan {
  /// Iterations of the innermost loop that a thread computes together.
  int64_t lanes = 1;
  /// Whether those are terms of a reduction.
  bool reducesLanes = false;
  /// Iterations inside an item, in units of lanes: of the kept loops and of the reduced ones.
  int64_t kept = 1, reduced = 1;
  /// Threads for either; a power of two for the reduced ones. One thread has every keptThreads-th
  /// of the kept iterations and every reducedThreads-th of the reduced ones.
  int64_t keptThreads = 1, reducedThreads = 1;

  static constexpr int64_t mostThreads = 256, vectorBytes = 16, bankBytes = 4;

  /// A pure function of the stage.
  static ThreadPlan of(const StagePlan &stage);
  /// How many iterations of the innermost loop a thread computes together, so that its widest
  /// operand is accessed by so many bytes.
  static int64_t lanesOf(const StagePlan &stage, int64_t accessBytes);
  /// Of a stage without reductions by that many threads, each of that many lanes, of which the
  /// innermost loop has a whole number.
  static ThreadPlan ofThreads(const StagePlan &stage, int64_t threads, int64_t lanes);
  /// Of a block.
  int64_t threads() const { return keptThreads * reducedThreads; }
  /// Kept iterations of one thread.
  int64_t keptSteps() const { return llvm::divideCeil(kept, keptThreads); }
  /// Whether a reduction's results go to the threads of a block one by one, so that consecutive
  /// threads store consecutive results; else a thread has those of its lanes.
  bool spreadsResults() const {
    return lanes > 1 && !reducesLanes && lanes <= reducedThreads && keptSteps() == 1;
  }
  /// Reduced iterations of one thread.
  int64_t reducedSteps() const { return llvm::divideCeil(reduced, reducedThreads); }
};

/// Blocks of a stage's launch: each runs a chunk of items.
int64_t blocksOf(const StagePlan &stage);

} // namespace dlc
