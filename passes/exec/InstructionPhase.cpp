#include "passes/exec/InstructionPhase.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace dlc;
using namespace dlc::exec;

artifact::Operation dlc::operationOf(mlir::Operation *instruction) {
  using artifact::Operation;
  return llvm::TypeSwitch<mlir::Operation *, Operation>(instruction)
      .Case<DispatchOp>([](auto) { return Operation::Dispatch; })
      .Case<CopyOp>([](auto) { return Operation::Copy; })
      .Case<StartOp>([](auto) { return Operation::CollectiveStart; })
      .Case<exec::WaitOp>([](auto) { return Operation::CollectiveWait; })
      .Case<AccumulateOp>([](auto) { return Operation::Accumulate; })
      .Case<RecallOp>([](auto) { return Operation::Recall; })
      .Case<RecordOp>([](auto) { return Operation::RecordEvent; })
      .Case<WaitEventOp>([](auto) { return Operation::WaitEvent; })
      .Case<UploadOp>([](auto) { return Operation::Upload; })
      .Case<DownloadOp>([](auto) { return Operation::Download; });
}

artifact::Phase dlc::phaseOf(mlir::Operation *instruction) {
  if (auto phase = instruction->getAttrOfType<PhaseAttr>("phase"))
    return static_cast<artifact::Phase>(phase.getValue());
  if (isa<RecallOp>(instruction))
    return artifact::Phase::Count;
  return isa<AccumulateOp>(instruction) ? artifact::Phase::Backward
                                        : artifact::Phase::Communication;
}
