// Stages that do the same with each of many operands.
#pragma once

#include "passes/codegen/ClusterPlan.h"
#include "passes/codegen/cpu/MergeKernels.h"

#include <optional>

namespace dlc {

/// A stage that does the same with many operands, which one body does for all such stages: adds
/// that body if it is not there, a function of the records' ABI. Nothing if the stage is another.
std::optional<KernelEntry> emitOperandLoop(mlir::OpBuilder &builder, mlir::Location loc,
                                           llvm::StringRef name, const StagePlan &stage,
                                           unsigned lanes);

} // namespace dlc
