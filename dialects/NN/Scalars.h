// The scalars that the host writes before each step. Only they may differ between steps and runs of
// one artifact; all other numbers are constants of it.
#pragma once

#include "dialects/NN/NN.h"

namespace dlc::nn {

struct ScalarInfo {
  llvm::StringLiteral name;
  bool isInteger; // tensor<i64>, else tensor<f32>
  double initial;
  bool isEqualOnAllRanks;
};

/// Null if no scalar has this name.
const ScalarInfo *lookupScalar(llvm::StringRef name);
llvm::ArrayRef<ScalarInfo> wellKnownScalars();
mlir::RankedTensorType scalarType(mlir::MLIRContext *context, const ScalarInfo &info);

/// The value of a well-known scalar, read at the insertion point. Adds the variable to the model if
/// it is missing.
mlir::Value readScalar(mlir::OpBuilder &builder, mlir::Location loc, ModelOp model,
                       llvm::StringRef name);

} // namespace dlc::nn
