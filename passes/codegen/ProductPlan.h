// A cluster that is one matrix product of few rows with row-major operands, like a dense layer and
// its data gradient at a small batch. Reading the weight once bounds them, and library code for
// general products reads it at a fraction of the memory's pace.
//
// Planning is a pure function of the op and the target's limits; instruction sets matter to the
// emission alone.
#pragma once

#include "dialects/NN/NN.h"
#include "runtime/core/LoopLimits.h"

#include <optional>

namespace dlc {

/// y [rows, columns] = a [rows, inner] b + bias. b is [columns, inner] if it is `transposed`: then
/// each element is a product of two rows; else rows of b are added up.
struct ProductPlan {
  nn::MatmulOp op;
  int64_t rows, inner, columns;
  bool transposed;
  /// Columns of y that an item has; the last item has the rest.
  int64_t itemColumns;
  int64_t chunk; // items

  int64_t items() const { return llvm::divideCeil(columns, itemColumns); }
};

/// Plans a product; nothing if no kernel can be generated for it.
std::optional<ProductPlan> planProduct(nn::MatmulOp op, const rt::ProductLimits &limits);

/// The same with items and chunks that are known.
std::optional<ProductPlan> productWith(nn::MatmulOp op, int64_t itemColumns, int64_t chunk);

/// The plan that the cluster of a product carries. Fails with a diagnostic at one that carries
/// none, or another than one of its body.
mlir::FailureOr<ProductPlan> restoreProduct(mlir::Operation *cluster);

/// The product that a cluster consists of, or null.
nn::MatmulOp productOf(mlir::Block &cluster);

} // namespace dlc
