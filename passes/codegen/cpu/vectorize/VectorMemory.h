// Loads and stores of all lanes of a vector. Lanes that lie one after the other are one load or
// store, others are gathered and scattered; a load of the same element for all stays a scalar.
#pragma once

#include "passes/codegen/ClusterPlan.h"
#include "passes/codegen/cpu/vectorize/VectorNest.h"

#include "mlir/IR/IRMapping.h"

namespace dlc {

class VectorMemory {
public:
  /// `before` is the function that `function` takes the place of: its arguments come first.
  VectorMemory(VectorNest &nest, mlir::func::FuncOp before, mlir::func::FuncOp function);

  /// The argument that an operand of the generic is, or is a part of; or a constant's table.
  mlir::Value of(mlir::Value operand);
  mlir::Value argument(unsigned position) { return function.getArgument(position); }

  /// Elements at the indices, in the current level; zero where `inside` does not hold.
  Lanes load(mlir::Value memory, llvm::ArrayRef<Lanes> indices, const Lanes *inside = nullptr);
  /// Stores lanes that exist, in the innermost level.
  void store(mlir::Value value, mlir::Value memory, llvm::ArrayRef<Lanes> indices,
             bool nonTemporal = false);

private:
  Lanes loadScalar(mlir::Value memory, llvm::ArrayRef<mlir::Value> indices, const Lanes *inside);
  mlir::Value offsetsOf(mlir::Value memory, llvm::ArrayRef<Lanes> indices);
  mlir::Value allLanes();

  VectorNest &nest;
  mlir::ImplicitLocOpBuilder &b;
  mlir::func::FuncOp function;
  mlir::IRMapping arguments; // of the function before
};

/// True if a write's vectors fill whole lines of memory one after the other and begin at multiples
/// of their bytes; buffers begin at multiples of a line.
bool fillsLines(const StagePlan &plan, const ClusterWrite &write, int64_t lanes);

} // namespace dlc
