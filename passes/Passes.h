// Passes and pipelines of dlc, in the order of the stages nn, train, schedule, exec.
#pragma once

#include "dialects/Comm/Comm.h"
#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/Stage.h"
#include "passes/planning/Decisions.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace dlc {

struct Link;

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// What the stages nn (`precision` and `sources` alone), train (`wire` alone) and schedule decide
/// for; the passes' own options.
struct ScheduleOptions : mlir::PassPipelineOptions<ScheduleOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("cpu:native, cpu:avx512, ..."),
                             llvm::cl::init(DefaultDecisions::target)};
  Option<unsigned> threads{*this, "threads", llvm::cl::desc("plan for teams of 1..threads"),
                           llvm::cl::init(1)};
  Option<std::string> precision{*this, "precision", llvm::cl::desc("f32, bf16 or f16"),
                                llvm::cl::init(DefaultDecisions::precision)};
  Option<std::string> math{*this, "math", llvm::cl::desc("strict or fast"),
                           llvm::cl::init(DefaultDecisions::math)};
  Option<std::string> link{*this, "link",
                           llvm::cl::desc("GBIT[:US], shm, nvlink or pcie; empty: the target's")};
  Option<uint64_t> bucketSize{*this, "bucket-size", llvm::cl::desc("bytes; 0: from the link"),
                              llvm::cl::init(0)};
  Option<std::string> wire{*this, "wire", llvm::cl::desc("type of gradients between ranks"),
                           llvm::cl::init(DefaultDecisions::wire)};
  Option<std::string> sources{*this, "sources",
                              llvm::cl::desc("NAME=u8|u16, divided by commas: what files hold")};
  Option<uint64_t> memoryLimit{*this, "memory-limit",
                               llvm::cl::desc("bytes that a plan may take; 0: what the device has"),
                               llvm::cl::init(0)};
  Option<bool> noOverlap{*this, "no-overlap", llvm::cl::desc("wait right behind every start"),
                         llvm::cl::init(false)};
};

/// The link that an option names, or that the model's target has where the option is empty; an
/// error at the model if that is none.
llvm::FailureOr<Link> parseLink(nn::ModelOp model, llvm::StringRef text);

/// Fails with a message at the model unless it is at the stage that a pass works on: passes rely
/// on what that stage's verifier, or the passes before, establish.
llvm::LogicalResult requireStage(nn::ModelOp model, nn::Stage stage);

/// Appends a stage's passes but for its verifier: from the previous stage's output to its own.
void buildNNPipeline(mlir::OpPassManager &manager, const ScheduleOptions &options);
void buildTrainPipeline(mlir::OpPassManager &manager, const ScheduleOptions &options);
void buildSchedulePipeline(mlir::OpPassManager &manager, const ScheduleOptions &options);
void buildExecPipeline(mlir::OpPassManager &manager);

/// Appends all stages up to `last`, each closed by its verifier. Stages that the model's mark says
/// it is past are skipped; of the one it is at, only the verifier runs. Stage nn always runs on
/// models marked nn: text that people write carries that mark too.
void addStagesUpTo(mlir::OpPassManager &manager, nn::Stage last, const ScheduleOptions &options);

/// Registers passes and the pipelines --dlc-{nn,train,schedule,exec}-pipeline (each runs all stages
/// up to its own).
void registerAllPasses();

} // namespace dlc
