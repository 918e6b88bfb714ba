// The accumulators of a stage's reductions: what they begin with, how they become one, and their
// stores.
#pragma once

#include "passes/codegen/cpu/vectorize/JammedIterations.h"
#include "passes/codegen/cpu/vectorize/VectorMemory.h"
#include "passes/codegen/cpu/vectorize/VectorPlan.h"

namespace dlc {

/// Vectors by interleaved iteration, jammed iteration and write.
using Accumulators = llvm::SmallVector<mlir::Value>;

class AccumulatorEmitter {
public:
  AccumulatorEmitter(const VectorPlan &plan, VectorNest &nest, VectorMemory &memory,
                     JammedIterations &jammed);

  /// The vectors of one copy of the body.
  llvm::MutableArrayRef<mlir::Value> ofCopy(Accumulators &accumulators, size_t interleaved,
                                            size_t jammedIteration) const;
  /// True if all results are rounded to less than f64.
  bool areRounded() const;

  /// What the accumulators begin with. In a run they are f32, one for each interleaved iteration. A
  /// sum of runs has only one for all of these.
  Accumulators identities(bool inRun);
  /// One vector for each jammed iteration and write.
  Accumulators combineInterleaved(Accumulators accumulators);
  /// Combines all and writes the results of each jammed iteration.
  void store(Accumulators accumulators);

private:
  mlir::Value combine(const ClusterWrite &write, mlir::Value x, mlir::Value y);
  mlir::Value combineLanes(const ClusterWrite &write, mlir::Value value);
  void store(const ClusterWrite &write, mlir::OpOperand *out, mlir::Value value);

  const VectorPlan &plan;
  VectorNest &nest;
  VectorMemory &memory;
  JammedIterations &jammed;
  mlir::ImplicitLocOpBuilder &b;
  llvm::SmallVector<const ClusterWrite *> reductions;
};

} // namespace dlc
