// A stage as the function that every thread of its launch runs.
//
// The function takes one pointer into global memory a buffer, in the stage's order. Arithmetic is
// on scalars, lane by lane; accesses of consecutive lanes are vectors where the form of the address
// proves that they are aligned.
#pragma once

#include "passes/codegen/ClusterPlan.h"
#include "passes/codegen/EmittedCode.h"

namespace dlc {

/// Emits the stage's function and its tables and shared memory. It is in LLVM's dialect, its body
/// still in arith, math and scf, too. Returns how it is launched, but for its registers.
Launch emitGpuStage(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                    const StagePlan &stage);

} // namespace dlc
