// Leaves the rows that pad a batch out of losses and metrics.
//
// A value has rows if its dimension 0 is that of the inputs and each row is computed from the same
// row of them. Sums over such rows can be restricted to the first `valid_rows`, and so can linear
// functions of sums. Nothing else that an input enters can: it is refused, never guessed.
#pragma once

#include "dialects/NN/NN.h"

#include <functional>
#include <string>

namespace dlc::nn {

class RowMask {
public:
  /// `readValidRows` gives the scalar `valid_rows` (i64) at the builder's insertion point. Of
  /// values in `masked` it is known that they are computed from the valid rows alone.
  RowMask(mlir::Block &program, int64_t batch,
          std::function<mlir::Value(mlir::OpBuilder &)> readValidRows,
          const llvm::DenseSet<mlir::Value> &masked = {});

  /// Replaces a (sum, count) pair by that of the valid rows; rows beyond count nothing even where
  /// they hold NaN. Returns why that cannot be done, or an empty string.
  std::string apply(mlir::Value &sum, mlir::Value &count);

private:
  /// Constant: no input enters. Masked: computed from the valid rows alone. Mixed: no row of it
  /// belongs to one row of the inputs.
  enum class Kind { Constant, Masked, Rows, Mixed };

  Kind kindOf(mlir::Value value) const { return kinds.lookup_or(value, Kind::Constant); }
  Kind kindAfter(mlir::Operation *op) const;
  bool keepsRows(mlir::Operation *op) const;
  bool isBatch(mlir::Value value) const;
  mlir::Value maskLinear(mlir::Value value);
  mlir::Value maskReduction(ReduceSumOp op);
  mlir::Value isValid(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<int64_t> shape);
  mlir::Value shareOfValid(mlir::Value value);
  mlir::Value validRows();

  mlir::Block &program;
  int64_t batch;
  std::function<mlir::Value(mlir::OpBuilder &)> readValidRows;
  mlir::Value valid; // once read
  llvm::DenseMap<mlir::Value, Kind> kinds;
  llvm::DenseMap<mlir::Value, mlir::Value> twins;
};

} // namespace dlc::nn
