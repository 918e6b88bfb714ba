// Passes and pipelines of dlc, in the order of the stages nn, train, schedule, exec.
#pragma once

#include "dialects/Comm/Comm.h"
#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace dlc {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// Appends a stage's passes: from the previous stage's output to its own. Each ends with the
/// stage's verifier.
void buildNNPipeline(mlir::OpPassManager &manager);
void buildTrainPipeline(mlir::OpPassManager &manager);
void buildExecPipeline(mlir::OpPassManager &manager);

/// Registers passes and the pipelines --dlc-{nn,train,schedule,exec}-pipeline (each runs all stages
/// up to its own).
void registerAllPasses();

} // namespace dlc
