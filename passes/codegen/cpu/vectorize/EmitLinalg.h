// A stage of a plan as linalg, from which loops over vectors are made.
#pragma once

#include "passes/codegen/ClusterPlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace dlc {

/// A stage as linalg on memrefs: `function` holds fills of the accumulators, `nest` and, where sums
/// are rounded, one more op that rounds them.
struct LinalgStage {
  mlir::func::FuncOp function;
  mlir::linalg::GenericOp nest;
};
LinalgStage buildLinalgStage(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                             const ClusterPlan &plan, const StagePlan &stage);

} // namespace dlc
