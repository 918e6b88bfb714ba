// Stages that do the same with each of many operands.
#pragma once

#include "passes/codegen/ClusterPlan.h"
#include "passes/codegen/cpu/MergeKernels.h"

#include <optional>

namespace dlc {

/// The kernel of a stage that does the same with many operands. One body, a function of the
/// records' ABI, serves all such stages; it is added if it is not there. Nothing for other stages.
std::optional<KernelEntry> emitOperandLoop(mlir::OpBuilder &builder, mlir::Location loc,
                                           llvm::StringRef name, const StagePlan &stage,
                                           unsigned lanes);

} // namespace dlc
