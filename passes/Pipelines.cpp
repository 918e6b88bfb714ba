// The stages as pipelines, with a reason for the place of each pass.

#include "passes/Passes.h"
#include "passes/planning/OverlapSimulator.h"
#include "passes/planning/PlanningTarget.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace dlc;

LogicalResult dlc::requireStage(nn::ModelOp model, nn::Stage stage) {
  if (model.getStage() == nn::nameOf(stage))
    return success();
  return model.emitOpError("is at stage '")
         << model.getStage() << "', expected " << nn::nameOf(stage);
}

//===- Stages ---------------------------------------------------------------------------------===//

namespace {
/// Runs one stage on a model: its passes if the model has not reached the stage, its verifier alone
/// if the model is at the stage (it comes from a file then), nothing if the model is past it. A
/// pass does this, not the manager, since it depends on the model.
class StagePass : public PassWrapper<StagePass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StagePass)
  using Build = function_ref<void(OpPassManager &)>;

  StagePass(nn::Stage stage, Build build, Build verify)
      : stage(stage), passes(emptyPipeline()), verifier(emptyPipeline()) {
    // The first stage's passes, too, rely on what is verified.
    if (stage == nn::Stage::NN)
      passes.addPass(createVerifyNN({/*written=*/true}));
    build(passes);
    verify(verifier);
  }

  StringRef getName() const override { return "StagePass"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    passes.getDependentDialects(registry);
  }

  void runOnOperation() override {
    for (nn::ModelOp model : getOperation().getOps<nn::ModelOp>()) {
      nn::Stage reached = *nn::stageNamed(model.getStage()); // verified
      if (reached > stage)
        return;
      // People write stage nn, too: a model with this mark need not have been through its passes.
      if (reached == stage && stage != nn::Stage::NN)
        return run(verifier);
    }
    // Finds damage even where a manager does not verify after each pass.
    if (failed(runPipeline(passes, getOperation())) || failed(mlir::verify(getOperation())))
      return signalPassFailure();
    run(verifier);
  }

private:
  static OpPassManager emptyPipeline() {
    return OpPassManager(ModuleOp::getOperationName(), OpPassManager::Nesting::Implicit);
  }

  void run(OpPassManager &pipeline) {
    if (failed(runPipeline(pipeline, getOperation())))
      signalPassFailure();
  }

  nn::Stage stage;
  OpPassManager passes, verifier;
};
} // namespace

//===- nn -------------------------------------------------------------------------------------===//

void dlc::buildNNPipeline(OpPassManager &manager, const ScheduleOptions &options) {
  // Programs for evaluation and prediction come first: all later passes treat programs alike.
  manager.addPass(createDerivePrograms());
  manager.addPass(createSimplify());
  // Later passes take layers apart into kernels, which know no windows.
  manager.addPass(createPlanTiling());
  manager.addPass(createTileEvaluation());
  // So late that gradients follow the types of what was computed.
  manager.addPass(createMixedPrecision({options.precision}));
  // Last: what is rounded of an input does not depend on where it is normalised.
  manager.addPass(createStoreInputs({options.sources}));
}

//===- train ----------------------------------------------------------------------------------===//

void dlc::buildTrainPipeline(OpPassManager &manager, const ScheduleOptions &options) {
  manager.addPass(createDifferentiate());
  // Directly after: the pass finds the divisions by a loss's count by the form in which
  // differentiate writes them.
  manager.addPass(createInsertAllReduce({options.wire}));
  manager.addPass(createApplyOptimizer());
  // Gradient rules favour clarity: they leave products with 1, sums with 0, and equal scalars.
  manager.addPass(createSimplify());
  // Now it is settled what is assigned to a parameter and which casts of the parameter are read.
  manager.addPass(createInsert16BitWeights());
}

//===- schedule -------------------------------------------------------------------------------===//

llvm::FailureOr<Link> dlc::parseLink(nn::ModelOp model, StringRef text) {
  std::string named = text.empty() ? DefaultDecisions::link : text.str();
  bool isOfTarget = text.empty() && PlanningTarget::of(model);
  if (isOfTarget) {
    std::shared_ptr<rt::KernelPlanner> planner = openPlanner(model);
    if (!planner)
      return failure();
    named = planner->target().link;
  }
  std::optional<Link> link = Link::parse(named);
  if (!link)
    return model.emitError(isOfTarget ? "the target description's link is '" : "link is '")
           << named << "', expected " << Link::forms;
  return *link;
}

void dlc::buildSchedulePipeline(OpPassManager &manager, const ScheduleOptions &options) {
  OpPassManager &model = manager.nest<nn::ModelOp>();
  // Layouts are chosen op by op, so composites have to be gone.
  model.addPass(createLowerComposites());
  // Gradients often begin with what the forward pass has computed, too.
  model.addPass(createCombineEqual());
  model.addPass(createAssignLayouts({options.target, options.threads, options.math}));
  // Kernels of the target may want biases in 16 bits, too.
  model.addPass(createInsert16BitWeights());
  // Clusters read and write tensors as they lie, so layouts come first.
  model.addPass(createFuse());
  // What clusters read is known once they are formed.
  model.addPass(createRematerializeProducers());
  // Which ops compute and apply a gradient is settled now.
  model.addPass(createSplitGradients());
  // Buckets and overlap need costs, which are known of planned kernels alone.
  model.addPass(createPlanKernels());
  // Before the order is final, so that recomputed kernels are placed and overlapped like the rest.
  model.addPass(createRecomputeKernels({options.memoryLimit}));
  model.addPass(createCombineAllReduces({options.bucketSize, options.link}));
  model.addPass(createOverlapAllReduces({options.noOverlap, options.link}));
}

//===- exec -----------------------------------------------------------------------------------===//

void dlc::buildExecPipeline(OpPassManager &manager) {
  OpPassManager &model = manager.nest<nn::ModelOp>();
  // Tensors become buffers first: streams and memory are properties of instructions and places.
  model.addPass(createConvertNNToExec());
  // Where a variable lies is decided with what updates it; instructions are still few to move.
  model.addPass(createCombineUpdates());
  // Buckets have their sizes now.
  model.addPass(createCheckGradients());
  model.addPass(createAccumulateGradients());
  // Events are instructions, so they come before live intervals are counted.
  model.addPass(createAssignStreams());
  model.addPass(createPlanMemory());
  // Instructions have their order and places: now it is known how long a result waits for its
  // reader.
  model.addPass(createAssignNontemporalStores());
}

//===- All stages -----------------------------------------------------------------------------===//

void dlc::addStagesUpTo(OpPassManager &manager, nn::Stage last, const ScheduleOptions &options) {
  auto add = [&](nn::Stage stage, StagePass::Build build, StagePass::Build verify) {
    manager.addPass(std::make_unique<StagePass>(stage, build, verify));
    return stage == last;
  };
  if (add(
          nn::Stage::NN, [&](OpPassManager &m) { buildNNPipeline(m, options); },
          [](OpPassManager &m) { m.addPass(createVerifyNN()); }))
    return;
  if (add(
          nn::Stage::Train, [&](OpPassManager &m) { buildTrainPipeline(m, options); },
          [](OpPassManager &m) { m.addPass(createVerifyTrain()); }))
    return;
  if (add(
          nn::Stage::Schedule, [&](OpPassManager &m) { buildSchedulePipeline(m, options); },
          [](OpPassManager &m) { m.addPass(createVerifySchedule()); }))
    return;
  add(nn::Stage::Exec, buildExecPipeline, [](OpPassManager &m) { m.addPass(createVerifyExec()); });
}

void dlc::registerAllPasses() {
  registerDlcPasses();
  PassPipelineRegistration<ScheduleOptions>(
      "dlc-nn-pipeline", "elaborated model to simplified nn",
      [](OpPassManager &manager, const ScheduleOptions &options) {
        addStagesUpTo(manager, nn::Stage::NN, options);
      });
  PassPipelineRegistration<ScheduleOptions>(
      "dlc-train-pipeline", "nn to the differentiated training step",
      [](OpPassManager &manager, const ScheduleOptions &options) {
        addStagesUpTo(manager, nn::Stage::Train, options);
      });
  PassPipelineRegistration<ScheduleOptions>(
      "dlc-schedule-pipeline", "nn to the scheduled training step",
      [](OpPassManager &manager, const ScheduleOptions &options) {
        addStagesUpTo(manager, nn::Stage::Schedule, options);
      });
  PassPipelineRegistration<ScheduleOptions>(
      "dlc-exec-pipeline", "nn to instructions, buffers and memory",
      [](OpPassManager &manager, const ScheduleOptions &options) {
        addStagesUpTo(manager, nn::Stage::Exec, options);
      });
}
