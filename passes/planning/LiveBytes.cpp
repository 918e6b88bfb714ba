// One walk over the program with what is born and dies at each op.

#include "passes/planning/LiveBytes.h"

#include "dialects/Comm/Comm.h"
#include "passes/planning/PlannedKernel.h"

using namespace mlir;
using namespace dlc;

bool dlc::hasOwnPlace(Value value) {
  return value.getDefiningOp<comm::AllReduceOp>() ||
         llvm::any_of(value.getUsers(), llvm::IsaPred<comm::AllReduceOp, nn::AssignOp>);
}

static uint64_t bytesOf(Value value) {
  return static_cast<uint64_t>(nn::physicalBytes(nn::tensorType(value)));
}

LiveBytes::LiveBytes(Block &block) : sharing(block, hasOwnPlace) {
  llvm::DenseMap<Operation *, uint64_t> born, dying;
  for (auto [owner, last] : sharing.memories()) {
    uint64_t size = bytesOf(owner);
    born[owner.getDefiningOp()] += size;
    dying[last] += size;
  }
  uint64_t live = 0;
  for (Operation &op : block) {
    live += born.lookup(&op);
    nn::KernelAttr kernel = plannedKernel(&op);
    uint64_t here = live + (kernel ? kernel.getWorkspace() : 0);
    bytes[&op] = here;
    if (here > most) {
      most = here;
      atMost = &op;
    }
    live -= dying.lookup(&op);
  }
}

uint64_t LiveBytes::releasedAtPeak(Operation *op) const {
  uint64_t released = 0;
  llvm::SmallDenseSet<Value> seen;
  for (Value operand : op->getOperands())
    if (auto [owner, last] = sharing.memoryOf(operand); owner && seen.insert(owner).second &&
                                                        last && last != atMost &&
                                                        last->isBeforeInBlock(atMost))
      released += bytesOf(owner);
  return released;
}

uint64_t dlc::variableBytes(nn::ModelOp model) {
  uint64_t bytes = 0;
  for (auto variable : model.getBody().getOps<nn::VariableOp>())
    bytes += nn::physicalBytes(cast<RankedTensorType>(variable.getType()));
  return bytes;
}
