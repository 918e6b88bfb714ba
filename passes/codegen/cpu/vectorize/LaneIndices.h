// Indices of all lanes of a vector: affine expressions over the loops of a nest.
#pragma once

#include "passes/codegen/cpu/vectorize/VectorNest.h"

#include "mlir/IR/AffineMap.h"

namespace dlc {

/// An expression over `operands`, in the current level. It stays a scalar with a stride where it is
/// linear in the lanes.
Lanes evaluate(VectorNest &nest, mlir::AffineExpr expression, llvm::ArrayRef<Lanes> operands);

/// The results of a map over all loops, each in the outermost level that has its loops.
llvm::SmallVector<Lanes> evaluate(VectorNest &nest, mlir::AffineMap map);

/// True if the lanes' elements follow each other in memory.
bool areContiguous(llvm::ArrayRef<Lanes> indices);

} // namespace dlc
