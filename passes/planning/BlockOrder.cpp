// Kahn's algorithm with a priority queue.

#include "passes/planning/BlockOrder.h"

#include "llvm/ADT/DenseMap.h"

#include <queue>
#include <vector>

using namespace mlir;
using namespace dlc;

std::vector<Operation *> dlc::orderBlock(Block &block,
                                         llvm::function_ref<OrderKey(Operation *)> keyOf) {
  struct Node {
    OrderKey key;
    unsigned index;
    Operation *op;
    bool operator>(const Node &other) const {
      return std::tie(key, index) > std::tie(other.key, other.index);
    }
  };
  llvm::DenseMap<Operation *, unsigned> missing; // operands not yet placed, counted by use
  llvm::DenseMap<Operation *, Node> nodes;
  std::priority_queue<Node, std::vector<Node>, std::greater<>> ready;
  for (auto [index, op] : llvm::enumerate(block)) {
    unsigned count = llvm::count_if(op.getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && operand.getDefiningOp()->getBlock() == &block;
    });
    Node node{keyOf(&op), static_cast<unsigned>(index), &op};
    if (count == 0)
      ready.push(node);
    missing[&op] = count;
    nodes[&op] = node;
  }
  std::vector<Operation *> order;
  while (!ready.empty()) {
    Operation *op = ready.top().op;
    ready.pop();
    order.push_back(op);
    for (OpOperand &use : op->getUses())
      if (use.getOwner()->getBlock() == &block && --missing[use.getOwner()] == 0)
        ready.push(nodes[use.getOwner()]);
  }
  assert(order.size() == nodes.size() && "a block in SSA form has no cycles");
  return order;
}

void dlc::applyOrder(Block &block, ArrayRef<Operation *> order) {
  for (Operation *op : order)
    op->moveBefore(&block, block.end());
}
