// The reductions of an item, shared by the threads of a block.
//
// A thread adds up its terms in runs: f32 for some terms, which the accumulator's type takes in
// turn, since conversions to f64 and its additions are slow. Then lanes that are terms are added,
// then threads, as a tree over shared memory. The order depends on the plan alone.
#pragma once

#include "passes/codegen/gpu/LaneMemory.h"
#include "passes/codegen/gpu/ThreadPlan.h"

namespace dlc {

/// A thread's accumulators: of each reduction in turn, one a lane.
using ThreadSums = llvm::SmallVector<mlir::Value>;

class ThreadReduction {
public:
  /// `shared` is memory of `sharedBytes` that the block shares; null if it needs none.
  ThreadReduction(mlir::ImplicitLocOpBuilder &builder, const StagePlan &stage,
                  const ThreadPlan &plan, mlir::Value shared);
  static int64_t sharedBytes(const StagePlan &stage, const ThreadPlan &plan);

  /// Adds the terms of some reduced iterations to a run, one after the other.
  using Terms =
      llvm::function_ref<ThreadSums(llvm::ArrayRef<mlir::Value> iterations, ThreadSums run)>;
  /// All of an item's terms that a thread with these indices has, added up over threads. Where the
  /// plan spreads results, a thread has that of its own number, one value a reduction; else the
  /// first of the reduced threads has its own, one value a reduction if lanes are terms, else one a
  /// lane.
  /// `together`: iterations at a time, a power of two.
  ThreadSums reduce(mlir::Value keptThread, mlir::Value reducedThread, int64_t together,
                    Terms terms);

private:
  mlir::Type runType(const ClusterWrite &write) const;
  ThreadSums identities(bool ofRun);
  ThreadSums addRun(ThreadSums sums, llvm::function_ref<ThreadSums(ThreadSums)> run);
  ThreadSums addIterations(mlir::Value from, mlir::Value to, mlir::Value reducedThread,
                           ThreadSums run, int64_t together, Terms terms);
  ThreadSums addAll(mlir::Value reducedThread, int64_t together, Terms terms);
  ThreadSums combineLanes(ThreadSums sums);
  llvm::SmallVector<mlir::Value> combineThreads(const ClusterWrite &write, mlir::Value keptThread,
                                                mlir::Value reducedThread,
                                                llvm::ArrayRef<mlir::Value> sums);
  mlir::Value slot(mlir::Value thread, mlir::Value lane);
  mlir::Value constant(int64_t value);

  mlir::ImplicitLocOpBuilder &b;
  const StagePlan &stage;
  const ThreadPlan &plan;
  llvm::SmallVector<const ClusterWrite *> writes;
  mlir::Value shared;
};

} // namespace dlc
