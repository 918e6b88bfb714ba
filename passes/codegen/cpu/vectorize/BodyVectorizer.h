// The body of a stage on vectors: each op runs in the outermost level that has all it depends on,
// on scalars as long as it is the same for all lanes.
#pragma once

#include "passes/codegen/cpu/vectorize/VectorMemory.h"
#include "passes/codegen/cpu/vectorize/VectorPlan.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace dlc {

class BodyVectorizer {
public:
  BodyVectorizer(const VectorPlan &plan, VectorNest &nest, VectorMemory &memory)
      : plan(plan), generic(plan.generic), nest(nest), memory(memory), b(nest.builder()) {}

  /// One copy of the body, that of the jammed iteration `copy`. Plain results are stored; returns
  /// what the accumulators, one for each reduction, are after it.
  llvm::SmallVector<mlir::Value> emit(size_t copy, llvm::ArrayRef<mlir::Value> accumulators);

private:
  void loadInputs();
  void emitOp(mlir::Operation &op, size_t copy);
  Lanes emitApply(mlir::affine::AffineApplyOp op);
  Lanes emitLoad(mlir::memref::LoadOp op, const Lanes *inside = nullptr);
  Lanes emitElementwise(mlir::Operation &op);
  Lanes emitRandom(mlir::func::CallOp op, size_t copy);
  unsigned levelOf(mlir::Operation &op) const;
  mlir::Value accumulate(unsigned write, size_t reduction, mlir::Value accumulator);
  mlir::Value addTerm(const SumTerm &term, mlir::Value accumulator);
  void storeResult(unsigned write);
  mlir::Value result(unsigned write);

  const VectorPlan &plan;
  mlir::linalg::GenericOp generic;
  VectorNest &nest;
  VectorMemory &memory;
  mlir::ImplicitLocOpBuilder &b;
  /// What the first of the jammed iterations has computed for all.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> randomBits;
};

} // namespace dlc
