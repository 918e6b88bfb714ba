// The nodes and writes of a stage at one point of its loops, as every target's emitter has them.
#pragma once

#include "passes/codegen/ClusterPlan.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dlc {

/// The type that elements of a type have in memory: booleans are bytes there, and integers have no
/// sign.
mlir::Type storedType(mlir::Type element);

/// An element from memory as one of the type that nodes compute with.
mlir::Value emitLoaded(mlir::ImplicitLocOpBuilder &builder, mlir::Value stored, mlir::Type element);

/// An integer, or a coordinate, as one of an integer type.
mlir::Value emitNumber(mlir::ImplicitLocOpBuilder &builder, mlir::Value index, mlir::Type type);

/// What nodes ask of the loops around them.
struct PointEmitter {
  /// The value of a node's form and its quotients, of an integer type.
  llvm::function_ref<mlir::Value(const ClusterNode &)> index;
  /// Whether all bounds hold; there is one at least.
  llvm::function_ref<mlir::Value(llvm::ArrayRef<Bound>)> inside;
  /// The element that a Read or Table has, as a value to compute with.
  llvm::function_ref<mlir::Value(const ClusterNode &)> load;
};

/// The value of a node of these operands.
mlir::Value emitNode(mlir::ImplicitLocOpBuilder &builder, const ClusterNode &node,
                     mlir::ValueRange operands, const PointEmitter &point);

using InsideEmitter = llvm::function_ref<mlir::Value()>;

/// A reduction's accumulator `old`, of whatever type, with one more value, unless that is not real;
/// `inside` says whether all bounds of the write hold, where it has bounds.
mlir::Value emitAccumulated(mlir::ImplicitLocOpBuilder &builder, const ClusterWrite &write,
                            mlir::Value value, mlir::Value old, InsideEmitter inside);

/// What a plain write stores: the value in the type of memory, or zero outside.
mlir::Value emitStored(mlir::ImplicitLocOpBuilder &builder, const ClusterWrite &write,
                       mlir::Value value, InsideEmitter inside);

/// Two accumulators of a reduction as one.
mlir::Value emitCombined(mlir::ImplicitLocOpBuilder &builder, const ClusterWrite &write,
                         mlir::Value a, mlir::Value b);

} // namespace dlc
