// The stages as pipelines. Reads as the table of DESIGN's section on the pipeline, with a reason
// per pass.

#include "passes/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace dlc;

//===- Stages ---------------------------------------------------------------------------------===//

namespace {
/// A pipeline that runs only on models that have not reached its stage. Which passes run depends on
/// the model, so they are run by a pass rather than listed in the manager.
class StagePass : public PassWrapper<StagePass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StagePass)

  StagePass(StringRef stage, function_ref<void(OpPassManager &)> build)
      : stage(stage), pipeline(ModuleOp::getOperationName(), OpPassManager::Nesting::Implicit) {
    build(pipeline);
  }

  StringRef getName() const override { return "StagePass"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    pipeline.getDependentDialects(registry);
  }

  void runOnOperation() override {
    auto models = getOperation().getOps<nn::ModelOp>();
    if (llvm::any_of(models, [&](nn::ModelOp model) { return hasReached(model); }))
      return;
    if (failed(runPipeline(pipeline, getOperation())))
      signalPassFailure();
  }

private:
  bool hasReached(nn::ModelOp model) const {
    static constexpr StringLiteral order[] = {"nn", "train", "schedule", "exec"};
    auto own = llvm::find(order, StringRef(stage)), reached = llvm::find(order, model.getStage());
    return own < reached || (own == reached && stage != "nn");
  }

  std::string stage;
  OpPassManager pipeline;
};
} // namespace

void dlc::addStage(OpPassManager &manager, StringRef stage,
                   function_ref<void(OpPassManager &)> build) {
  manager.addPass(std::make_unique<StagePass>(stage, build));
}

//===- nn -------------------------------------------------------------------------------------===//

void dlc::buildNNPipeline(OpPassManager &manager) {
  // Evaluation and prediction first, so that whatever follows treats all programs alike.
  manager.addPass(createDerivePrograms());
  manager.addPass(createSimplify());
  manager.addPass(createVerifyNN());
}

//===- train ----------------------------------------------------------------------------------===//

void dlc::buildTrainPipeline(OpPassManager &manager) {
  manager.addPass(createDifferentiate());
  // Directly after: it knows the divisions by a loss's count by the form that differentiate gives
  // them.
  manager.addPass(createInsertAllReduce());
  manager.addPass(createApplyOptimizer());
  // Gradient rules favour clarity: they leave products with 1, sums with 0, and recomputed scalars.
  manager.addPass(createSimplify());
  manager.addPass(createVerifyTrain());
}

//===- schedule -------------------------------------------------------------------------------===//

void dlc::buildSchedulePipeline(OpPassManager &manager, const ScheduleOptions &options) {
  OpPassManager &model = manager.nest<nn::ModelOp>();
  // Layouts are chosen op by op, so composites have to be gone.
  model.addPass(createLowerComposites());
  model.addPass(createCSEPass());
  model.addPass(createAssignLayouts({options.target, options.threads, options.math}));
  // Clusters read and write tensors as they lie, so layouts come first.
  model.addPass(createFuse());
  // Kernels are what costs are known of; buckets and overlap need those costs.
  model.addPass(createPlanKernels());
  model.addPass(createCombineAllReduces({options.bucketSize, options.link}));
  model.addPass(createOverlapAllReduces({options.noOverlap, options.link}));
  model.addPass(createVerifySchedule());
}

//===- exec -----------------------------------------------------------------------------------===//

void dlc::buildExecPipeline(OpPassManager &manager) {
  OpPassManager &model = manager.nest<nn::ModelOp>();
  // Tensors become buffers first: streams and memory are properties of instructions and places.
  model.addPass(createConvertNNToExec());
  // Events are instructions, so they come before live intervals are counted.
  model.addPass(createAssignStreams());
  model.addPass(createPlanMemory());
  model.addPass(createVerifyExec());
}

//===- All stages -----------------------------------------------------------------------------===//

void dlc::addStagesUpTo(OpPassManager &manager, StringRef last, const ScheduleOptions &options) {
  addStage(manager, "nn", buildNNPipeline);
  if (last == "nn")
    return;
  addStage(manager, "train", buildTrainPipeline);
  if (last == "train")
    return;
  addStage(manager, "schedule",
           [&](OpPassManager &stage) { buildSchedulePipeline(stage, options); });
  if (last == "schedule")
    return;
  assert(last == "exec" && "no such stage");
  addStage(manager, "exec", buildExecPipeline);
}

void dlc::registerAllPasses() {
  registerDlcPasses();
  PassPipelineRegistration<>(
      "dlc-nn-pipeline", "elaborated model to simplified nn",
      [](OpPassManager &manager) { addStagesUpTo(manager, "nn", ScheduleOptions()); });
  PassPipelineRegistration<>(
      "dlc-train-pipeline", "nn to the differentiated training step",
      [](OpPassManager &manager) { addStagesUpTo(manager, "train", ScheduleOptions()); });
  PassPipelineRegistration<ScheduleOptions>(
      "dlc-schedule-pipeline", "nn to the scheduled training step",
      [](OpPassManager &manager, const ScheduleOptions &options) {
        addStagesUpTo(manager, "schedule", options);
      });
  PassPipelineRegistration<ScheduleOptions>(
      "dlc-exec-pipeline", "nn to instructions, buffers and memory",
      [](OpPassManager &manager, const ScheduleOptions &options) {
        addStagesUpTo(manager, "exec", options);
      });
}
