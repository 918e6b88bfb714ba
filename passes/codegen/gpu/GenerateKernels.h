// The emission of all clusters of a model for a GPU.
#pragma once

#include "dialects/NN/NN.h"
#include "passes/codegen/EmittedCode.h"
#include "runtime/core/KernelPlanner.h"

namespace dlc {

/// Emits every exec.cluster of a model, one kernel `CLUSTER_STAGE` per stage, as PTX. Clusters are
/// emitted as the plans that they carry have it. `launches` hears how they are run.
mlir::FailureOr<std::string> emitGpuClusters(nn::ModelOp model, llvm::StringMap<Launch> &launches,
                                             llvm::raw_ostream *llvmText = nullptr);

/// The same for what a model was planned for, a target whose kernels are emitted by "gpu": binaries
/// for its device, and the PTX, from which drivers make others.
llvm::LogicalResult emitGpuKernels(nn::ModelOp model, const rt::PlannerTarget &target,
                                   EmittedCode &code, const CodeText &text);

} // namespace dlc
