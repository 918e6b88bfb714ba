// The terms that a stage's sums add in f32 for a while, before they go into the f64 sum.
#pragma once

#include "passes/codegen/ClusterPlan.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace dlc {

/// What a sum adds in an iteration, in f32: `value`, or its product with `factor`; nothing where
/// `inside` is false. All are values of the generic's body.
struct SumTerm {
  mlir::Value value, factor, inside;
};

/// Invariant: a term for each reduction of the stage, or none at all.
class SumTerms {
public:
  SumTerms(const StagePlan &plan, mlir::linalg::GenericOp generic);

  bool empty() const { return terms.empty(); }
  const SumTerm &operator[](size_t reduction) const { return terms[reduction]; }
  /// True of the body's own additions in f64, which the terms replace.
  bool replace(mlir::Operation *op) const { return replaced.contains(op); }

private:
  std::optional<SumTerm> termOf(mlir::Value sum);
  llvm::SmallVector<SumTerm> terms;
  llvm::SmallPtrSet<mlir::Operation *, 8> replaced;
};

} // namespace dlc
