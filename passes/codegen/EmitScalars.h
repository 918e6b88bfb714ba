// Arithmetic on scalars and vectors, with the types that elements have outside of memory.
#pragma once

#include "passes/codegen/ClusterPlan.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dlc {

/// The type that elements of a type have outside of memory: f32 for bf16 and f16.
mlir::Type computeType(mlir::Type element);

/// Computes an elementwise nn op on scalars of the compute types with arith and math. `index` is
/// the logical index of the element, which random numbers need.
mlir::Value emitScalar(mlir::ImplicitLocOpBuilder &builder, const ClusterNode &node,
                       mlir::ValueRange operands, mlir::Value index);

/// Converts between float types, scalars or vectors. A type to which no target rounds in one
/// instruction goes through f32.
mlir::Value emitResize(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, mlir::Type type);

/// The value of the compute type that is nearest to x among those of an element type.
mlir::Value emitRounded(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, mlir::Type element);

/// max(x, 0), of a rounded value or of one that is about to be.
mlir::Value emitRelu(mlir::ImplicitLocOpBuilder &builder, mlir::Value x);

/// A constant of a scalar type: i1, integer or float.
mlir::Value emitConstant(mlir::ImplicitLocOpBuilder &builder, mlir::Type type, double value);

} // namespace dlc
