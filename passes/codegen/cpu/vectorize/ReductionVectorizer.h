// The reduced loops of a stage: accumulators are values that the loops carry. Jammed and
// interleaved iterations have accumulators of their own.
//
// Sums are f64. Terms that are rounded to f32 in any case, or exact in it, are added in f32 for a
// run of few iterations, and the runs in f64: an error does not grow with the number of runs.
#pragma once

#include "passes/codegen/cpu/vectorize/AccumulatorEmitter.h"
#include "passes/codegen/cpu/vectorize/BodyVectorizer.h"

namespace dlc {

class ReductionVectorizer {
public:
  ReductionVectorizer(const VectorPlan &plan, VectorNest &nest, VectorMemory &memory,
                      BodyVectorizer &body, JammedIterations &jammed);

  /// The loops, in the innermost level, and the stores of what they reduce to.
  void emit();

private:
  using Iteration = llvm::function_ref<Accumulators(Accumulators)>;

  Accumulators reduce(size_t position, Accumulators accumulators);
  Accumulators reduceInnermost(unsigned loop, Accumulators accumulators);
  Accumulators reduceStrips(unsigned loop, Accumulators accumulators);
  Accumulators reduceInterleaved(unsigned loop, mlir::OpFoldResult from, mlir::OpFoldResult to,
                                 Accumulators accumulators);
  Accumulators reduceRemainder(unsigned loop, Accumulators accumulators);
  Accumulators reduceLoop(unsigned loop, mlir::OpFoldResult from, mlir::OpFoldResult to,
                          int64_t step, Accumulators accumulators, Iteration body);
  Accumulators reduceRun(Accumulators sums, Iteration body);
  void emitBody(int64_t interleaved, Accumulators &accumulators);
  int64_t extentOf(unsigned loop) const { return plan.stage.loops[loop].extent; }
  int64_t evenExtent(unsigned loop) const;
  int64_t iterationsFrom(size_t position) const;
  bool isRun(size_t position) const;

  const VectorPlan &plan;
  VectorNest &nest;
  BodyVectorizer &body;
  JammedIterations &jammed;
  AccumulatorEmitter emitter;
  mlir::ImplicitLocOpBuilder &b;
  llvm::SmallVector<unsigned> loops;
  int64_t interleaved; // iterations
  bool inRun = false;  // accumulators are of f32
};

} // namespace dlc
