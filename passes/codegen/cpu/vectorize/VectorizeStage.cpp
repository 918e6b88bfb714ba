#include "passes/codegen/cpu/vectorize/VectorizeStage.h"
#include "passes/codegen/cpu/vectorize/KeptLoops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace dlc;

/// The function with the arguments of the one before, and begin and end of the items; empty.
static func::FuncOp createFunction(func::FuncOp before) {
  ImplicitLocOpBuilder b(before.getLoc(), before);
  SmallVector<Type> types(before.getArgumentTypes());
  types.append(2, b.getIndexType());
  auto function = func::FuncOp::create(b, before.getName(), b.getFunctionType(types, {}));
  b.setInsertionPointToEnd(function.addEntryBlock());
  func::ReturnOp::create(b);
  return function;
}

/// The loop over items, and the indices of the loops that an item's number stands for.
static void openItems(func::FuncOp function, const StagePlan &plan, VectorNest &nest) {
  ImplicitLocOpBuilder &b = nest.builder();
  nest.moveTo(0);
  ValueRange range = function.getArguments().take_back(2);
  auto loop = scf::ForOp::create(b, range[0], range[1], nest.constant(1));
  nest.buildBefore(loop);
  nest.enter(loop.getBody());
  nest.moveToInnermost();
  Value rest = loop.getInductionVar();
  for (size_t i = plan.loops.size(); i-- > 0;) {
    if (!plan.loops[i].item)
      continue;
    Value extent = nest.constant(plan.loops[i].extent);
    nest.setIndex(i, {arith::RemUIOp::create(b, rest, extent), {}, 0, nest.innermost()});
    rest = arith::DivUIOp::create(b, rest, extent);
  }
}

/// The loops of an item; where the last one along a loop is shorter, in two versions.
static void emitItem(linalg::GenericOp generic, StagePlan plan, VectorNest &nest,
                     VectorMemory &memory) {
  auto emitVersion = [&] {
    VectorPlan version(plan, generic, nest.lanes());
    KeptLoops(version, nest, memory).emit();
  };
  std::optional<unsigned> shorter = plan.raggedLoop();
  if (!shorter)
    return emitVersion();
  ImplicitLocOpBuilder &b = nest.builder();
  nest.moveToInnermost();
  Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, nest.index(*shorter - 1).scalar,
                                       nest.constant(plan.loops[*shorter - 1].extent - 1));
  auto choice = scf::IfOp::create(b, isLast, /*withElseRegion=*/true);
  nest.buildBefore(choice);
  nest.enter(choice.elseBlock());
  emitVersion();
  nest.leave();
  plan.loops[*shorter].extent = plan.loops[*shorter].last;
  nest.enter(choice.thenBlock());
  emitVersion();
  nest.leave();
}

void dlc::vectorizeStage(LinalgStage &stage, const StagePlan &plan, unsigned lanes) {
  int64_t most = llvm::PowerOf2Ceil(plan.loops.back().extent);
  func::FuncOp function = createFunction(stage.function);
  VectorNest nest(function, plan.loops.size(), std::min<int64_t>(lanes, most));
  VectorMemory memory(nest, stage.function, function);
  openItems(function, plan, nest);
  emitItem(stage.nest, plan, nest, memory);
  // Non-temporal stores are ordered by nothing else.
  if (llvm::any_of(plan.writes, [](const ClusterWrite &write) { return write.nonTemporal; })) {
    ImplicitLocOpBuilder &b = nest.builder();
    b.setInsertionPoint(function.front().getTerminator());
    LLVM::CallIntrinsicOp::create(b, b.getStringAttr("llvm.x86.sse.sfence"), ValueRange());
  }
  stage.function.erase();
  stage.function = function;
}
