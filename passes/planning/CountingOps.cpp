// One walk finds what depends on inputs alone, another one, backwards, what the collectives among
// it need.

#include "passes/planning/CountingOps.h"

#include "dialects/Comm/Comm.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/Role.h"

using namespace mlir;
using namespace dlc;

/// True if the pass, not only the update, waits for the collective.
static bool isAwaited(Operation *collective) {
  return llvm::any_of(collective->getUsers(), [](Operation *user) {
    return isa<comm::WaitOp>(user) ? isAwaited(user) : nn::phaseOf(user) != nn::Phase::Update;
  });
}

CountingOps::CountingOps(Block &block) {
  llvm::DenseSet<Operation *> ofInputs;
  for (Operation &op : block)
    if (!isa<nn::ReadOp, comm::WaitOp>(op) && llvm::all_of(op.getOperands(), [&](Value operand) {
          Operation *producer = operand.getDefiningOp();
          return !producer || (ofInputs.contains(producer) && !isa<comm::AllReduceOp>(producer));
        }))
      ofInputs.insert(&op);
  for (Operation &op : llvm::reverse(block)) {
    bool counts =
        isa<comm::AllReduceOp, comm::StartOp>(op) && ofInputs.contains(&op) && isAwaited(&op);
    if (!counts && !ops.contains(&op))
      continue;
    ops.insert(&op);
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        ops.insert(producer);
  }
}
