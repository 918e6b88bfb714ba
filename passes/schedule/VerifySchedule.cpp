// dlc-verify-schedule: the numbers in comments are those of the pass's description.

#include "passes/Passes.h"
#include "passes/codegen/GeneratedKernel.h"
#include "passes/nn/ModelChecks.h"
#include "passes/planning/BucketLayout.h"
#include "passes/planning/KernelRequests.h"
#include "passes/planning/LayoutSolver.h"
#include "passes/planning/PlannedKernel.h"

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "passes/Passes.h.inc"
} // namespace dlc

static LogicalResult verifySlots(nn::ModelOp model) {
  SymbolTable symbols(model);
  for (auto slot : model.getBody().getOps<nn::VariableOp>()) { // 7.
    if (!slot.getOwner())
      continue;
    auto owner = symbols.lookup<nn::VariableOp>(*slot.getOwner());
    auto type = cast<RankedTensorType>(slot.getType());
    auto ownerType = cast<RankedTensorType>(owner.getType());
    if (type.getShape() == ownerType.getShape() && type.getEncoding() != ownerType.getEncoding())
      return slot.emitOpError("has type ") << type << ", its parameter " << ownerType;
  }
  return success();
}

static bool isRowMajor(Value value) { return !nn::tensorType(value).getEncoding(); }

static LogicalResult verifyLayouts(Operation *op) {
  if (op->hasTrait<nn::ReadByHost>() && // 6.
      !llvm::all_of(op->getOperands(), isRowMajor))
    return op->emitOpError("takes row-major tensors");
  if (isa<nn::ReshapeOp, nn::TransposeOp>(op) && // 8.
      !(isRowMajor(op->getOperand(0)) && isRowMajor(op->getResult(0))))
    return op->emitOpError("works in logical order and needs row-major tensors");
  if (auto movement = dyn_cast<nn::BlocksOpInterface>(op)) { // 8.
    Attribute layout = nn::tensorType(op->getResult(0)).getEncoding();
    for (Value operand : op->getOperands())
      if (nn::tensorType(operand).getEncoding() != layout)
        return op->emitOpError("mixes layouts: ")
               << operand.getType() << " and " << op->getResult(0).getType();
    if (!movement.canMoveIn(nn::layoutOf(nn::tensorType(op->getResult(0)))))
      return op->emitOpError("cuts a block of ") << op->getResult(0).getType();
  }
  if (auto pool = dyn_cast<nn::MaxPoolOp>(op)) // 8.
    if (nn::tensorType(pool.getY()).getEncoding() != nn::tensorType(pool.getIndex()).getEncoding())
      return pool.emitOpError("index has another layout than the maximum");
  return success();
}

static LogicalResult verifyStart(comm::StartOp start, int64_t bucket) {
  if (static_cast<int64_t>(start.getBucket()) != bucket) // 3.
    return start.emitOpError("is bucket ")
           << start.getBucket() << ", but the order of the program makes it " << bucket;
  for (Value input : start.getInputs()) {
    for (Operation *user : input.getUsers())
      if (user != start && start->isBeforeInBlock(user)) // 4.
        return user->emitOpError("uses a value behind the start of its all-reduce")
                   .attachNote(start.getLoc())
               << "from here on its memory belongs to bucket " << bucket;
    if (!isOwnResult(input)) // 5.
      return start.emitOpError("needs results of kernels that nothing else uses, got ") << input;
  }
  return success();
}

/// True for what the exec stage knows: kernels, collectives, views, and what touches variables and
/// results.
static bool hasPlace(Operation *op) {
  return hasRequest(op) ||
         isa<nn::FusedOp, nn::ReadOp, nn::AssignOp, nn::ReshapeOp, nn::CountNonfiniteOp, nn::LossOp,
             nn::MetricOp, nn::OutputOp, comm::StartOp, comm::WaitOp>(op);
}

static LogicalResult verifyProgram(nn::ProgramOp program) {
  if (!llvm::all_of(program.getArguments(), [](Value input) { return isRowMajor(input); })) // 6.
    return program.emitOpError("has an input that is not row-major");
  int64_t bucket = 0;
  for (Operation &op : program.getBody().front()) {
    if ((hasRequest(&op) || isa<nn::FusedOp>(op)) && !plannedKernel(&op)) // 2.
      return op.emitOpError("has no kernel; run dlc-plan-kernels");
    if (isa<comm::AllReduceOp>(op)) // 3.
      return op.emitOpError("is left; run dlc-overlap-all-reduces");
    if (auto start = dyn_cast<comm::StartOp>(op))
      if (failed(verifyStart(start, bucket++)))
        return failure();
    WalkResult layouts = op.walk([](Operation *inner) {
      return failed(verifyLayouts(inner)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (layouts.wasInterrupted())
      return failure();
    if (!hasPlace(&op)) // 9.
      return op.emitOpError("is outside of a cluster; run dlc-fuse");
    if (auto fused = dyn_cast<nn::FusedOp>(op)) // 11.
      if (failed(verifyPlan(fused)))
        return failure();
  }
  return success();
}

static LogicalResult verifySchedule(nn::ModelOp model) {
  if (model.getStage() != "schedule" || !PlanningTarget::of(model)) // 1.
    return model.emitOpError("is of stage ")
           << model.getStage() << "; stage schedule with target, threads and math expected";
  if (failed(verifyAttributes(model)) || failed(verifyVariables(model)) ||
      failed(verifyPrograms(model, ProgramForm::Schedule)) || failed(verifySlots(model))) // 10.
    return failure();
  for (auto program : model.getBody().getOps<nn::ProgramOp>())
    if (failed(verifyProgram(program)))
      return failure();
  return success();
}

namespace {

struct VerifySchedulePass : dlc::impl::VerifyScheduleBase<VerifySchedulePass> {
  using Base::Base;
  void runOnOperation() override {
    if (failed(verifySchedule(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
