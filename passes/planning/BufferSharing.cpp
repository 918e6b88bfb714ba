// One walk in program order: when a cluster is reached, all values that lie in an operand's memory
// are known, and so is the last op that reads any of them.

#include "passes/planning/BufferSharing.h"

#include "passes/codegen/GeneratedKernel.h"

using namespace mlir;
using namespace dlc;

BufferSharing::BufferSharing(Block &block, llvm::function_ref<bool(Value)> hasOwnPlace) {
  owners.reserve(block.getOperations().size());
  lastUse.reserve(block.getOperations().size());
  for (Operation &op : block)
    for (OpResult result : op.getResults()) {
      if (!isa<RankedTensorType>(result.getType()) || isa<nn::ReadOp>(op) || hasOwnPlace(result))
        continue;
      Value owner = result;
      if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
        owner = owners.lookup(reshape.getX());
        views.insert(result);
      } else if (auto fused = dyn_cast<nn::FusedOp>(op)) {
        if (Value operand = findOperand(fused, result.getResultNumber())) {
          shared[result] = operand;
          owner = owners.lookup(operand);
        }
      }
      if (owner)
        place(result, owner);
    }
}

void BufferSharing::place(Value value, Value owner) {
  owners[value] = owner;
  auto [entry, isNew] = lastUse.insert({owner, value.getDefiningOp()});
  Operation *&last = entry->second;
  for (Operation *user : value.getUsers()) {
    // The host and later steps read these when the program has run.
    if (user->hasTrait<nn::ReadByHost>() || isa<nn::AssignOp>(user))
      last = nullptr;
    else if (last && last->isBeforeInBlock(user))
      last = user;
  }
}

Value BufferSharing::findOperand(nn::FusedOp op, unsigned result) const {
  for (auto [index, operand] : llvm::enumerate(op.getInputs())) {
    Value owner = owners.lookup(operand);
    if (operand.getType() != op.getResult(result).getType() || !owner || views.contains(operand) ||
        lastUse.lookup(owner) != op)
      continue;
    auto isInside = [&](Value other) { return owners.lookup(other) == owner; };
    // Another operand, a view perhaps, would lose what it reads there; two results need two places.
    if (llvm::count_if(op.getInputs(), isInside) > 1 || llvm::any_of(op.getResults(), isInside))
      continue;
    if (canShare(op, index, result))
      return operand;
  }
  return {};
}

BufferSharing::Memory BufferSharing::memoryOf(Value value) const {
  Value owner = owners.lookup(value);
  return {owner, lastUse.lookup(owner)};
}

SmallVector<BufferSharing::Memory> BufferSharing::memories() const {
  return llvm::map_to_vector(lastUse,
                             [](const auto &entry) { return Memory{entry.first, entry.second}; });
}
