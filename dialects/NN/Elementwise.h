// Shared by code that takes elementwise ops apart or puts them together.
#pragma once

#include "dialects/NN/NN.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dlc::nn {

/// Operands of an elementwise op that have its shape: not the scalars of a random one (seed, step,
/// first_row).
inline mlir::OperandRange fullOperands(mlir::Operation *op) {
  return isa<RandomOpInterface>(op) ? op->getOperands().drop_back(3) : op->getOperands();
}

/// The value in another element type; itself if it has that type. Row-major.
inline mlir::Value castTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                          mlir::Type element) {
  mlir::RankedTensorType type = tensorType(value);
  if (type.getElementType() == element)
    return value;
  return CastOp::create(builder, loc, mlir::RankedTensorType::get(type.getShape(), element), value);
}
inline mlir::Value castTo(mlir::ImplicitLocOpBuilder &builder, mlir::Value value,
                          mlir::Type element) {
  return castTo(builder, builder.getLoc(), value, element);
}

} // namespace dlc::nn
