// What vectorisation decides about a stage before any code is emitted.
#pragma once

#include "passes/codegen/ClusterPlan.h"
#include "passes/codegen/cpu/vectorize/SumTerms.h"

namespace dlc {

/// Which iterations have their copies of the body side by side.
struct Unrolling {
  Unrolling(const StagePlan &stage, int64_t lanes);

  /// A kept loop is unrolled and its copies are jammed into the loops inside of it: at most so many
  /// iterations share the loads of the reduced loops, or the counters of random numbers.
  unsigned jammedLoop;
  int64_t jammed = 1;
  bool sharesRandom = false;
  /// Iterations of the innermost reduced loop that are interleaved, each with accumulators of its
  /// own: one chain of additions would wait for each.
  int64_t interleaved = 1;

private:
  void shareRandom(const StagePlan &stage, int64_t lanes);
  void fillRegisters(const StagePlan &stage, int64_t lanes);
};

struct VectorPlan {
  VectorPlan(const StagePlan &stage, mlir::linalg::GenericOp generic, int64_t lanes)
      : stage(stage), generic(generic), sums(stage, generic), unrolling(stage, lanes) {}

  StagePlan stage; // of items of one kind
  mlir::linalg::GenericOp generic;
  SumTerms sums;
  Unrolling unrolling;
};

} // namespace dlc
