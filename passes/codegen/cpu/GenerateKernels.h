// The emission of all clusters of a model into one shared object.
#pragma once

#include "dialects/NN/NN.h"
#include "passes/codegen/EmittedCode.h"
#include "passes/codegen/cpu/CodeTarget.h"

namespace dlc {

/// Emits every exec.cluster of the model, one kernel `CLUSTER_STAGE` per stage, into one shared
/// object.
/// Clusters are emitted as the plans that they carry have it. Diagnostics go to the context, also
/// at a cluster that carries none, or one that its body cannot have.
llvm::LogicalResult emitClusters(nn::ModelOp model, const CodeTarget &target,
                                 std::string &sharedObject, const CodeText &text = {});

/// The same for what a model was planned for, a target whose kernels are emitted by "cpu".
llvm::LogicalResult emitCpuKernels(nn::ModelOp model, const rt::PlannerTarget &target,
                                   EmittedCode &code, const CodeText &text);

} // namespace dlc
