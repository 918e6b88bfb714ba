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
  SmallVector<BufferSharing::Memory> memories = sharing.memories();
  llvm::DenseMap<Operation *, uint64_t> dying(memories.size());
  bytes.reserve(block.getOperations().size());
  auto born = memories.begin();
  uint64_t live = 0;
  for (Operation &op : block) {
    for (; born != memories.end() && born->owner.getDefiningOp() == &op; ++born) {
      uint64_t size = bytesOf(born->owner);
      live += size;
      dying[born->last] += size;
    }
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
