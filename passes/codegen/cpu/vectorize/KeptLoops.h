// The kept loops of a stage's item: the vector loop last, in blocks of the iterations that are
// jammed, then one masked copy of the body for a remainder.
#pragma once

#include "passes/codegen/cpu/vectorize/ReductionVectorizer.h"

namespace dlc {

class KeptLoops {
public:
  KeptLoops(const VectorPlan &plan, VectorNest &nest, VectorMemory &memory);
  void emit() { emitFrom(0); }

private:
  void emitFrom(size_t position);
  void emitInside();
  void emitVectors(size_t position);
  void emitBlock(size_t position, int64_t vectors, int64_t left = 0);
  /// Iterations of a loop that are open at once.
  int64_t jammedOf(unsigned loop) const {
    return loop == plan.unrolling.jammedLoop ? plan.unrolling.jammed : 1;
  }

  const VectorPlan &plan;
  VectorNest &nest;
  llvm::SmallVector<unsigned> loops;
  JammedIterations jammed;
  BodyVectorizer body;
  ReductionVectorizer reduction;
};

} // namespace dlc
