// The stages as pipelines. Reads as the table of DESIGN's section on the pipeline, with a reason
// per pass.

#include "passes/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void dlc::buildNNPipeline(OpPassManager &) {}

void dlc::buildTrainPipeline(OpPassManager &manager) { manager.addPass(createDifferentiate()); }

void dlc::buildExecPipeline(OpPassManager &manager) {
  OpPassManager &model = manager.nest<nn::ModelOp>();
  // Tensors become buffers first: streams and memory are properties of instructions and places.
  model.addPass(createConvertNNToExec());
  // Events are instructions, so they come before live intervals are counted.
  model.addPass(createAssignStreams());
  model.addPass(createPlanMemory());
  model.addPass(createVerifyExec());
}

void dlc::registerAllPasses() {
  registerDlcPasses();
  PassPipelineRegistration<>("dlc-nn-pipeline", "elaborated model to simplified nn",
                             buildNNPipeline);
  PassPipelineRegistration<>("dlc-train-pipeline", "nn to the differentiated training step",
                             [](OpPassManager &manager) {
                               buildNNPipeline(manager);
                               buildTrainPipeline(manager);
                             });
}
