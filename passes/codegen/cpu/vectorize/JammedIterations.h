// The iterations of the jammed loop that are open at once.
#pragma once

#include "passes/codegen/cpu/vectorize/VectorNest.h"

namespace dlc {

class JammedIterations {
public:
  JammedIterations(VectorNest &nest, unsigned loop) : nest(nest), loop(loop) {}

  /// Iterations from the loop's index on.
  void open(int64_t count);
  void maskLast(mlir::Value mask) { iterations.back().mask = mask; }
  void close() { iterations.clear(); }

  /// One if none are open: that in which the nest is.
  size_t size() const { return std::max<size_t>(1, iterations.size()); }
  /// What is built next is of this iteration.
  void enter(size_t i);

private:
  struct Iteration {
    Lanes index;
    mlir::Value mask;
  };
  VectorNest &nest;
  unsigned loop;
  llvm::SmallVector<Iteration> iterations;
};

} // namespace dlc
