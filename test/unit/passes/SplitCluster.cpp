#include "test/unit/passes/SplitCluster.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::test;
using reference::Tensor;

/// True of what is as large as the results of reductions.
static bool isBehind(Value value, nn::ReductionOpInterface reduction) {
  return !isa_and_present<nn::ReductionOpInterface>(value.getDefiningOp()) &&
         nn::haveOneSpace(nn::tensorType(value), nn::tensorType(reduction->getResult(0)));
}

static void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>())
      op.erase();
}

SplitCluster::SplitCluster(Region &body) {
  auto reductions = body.getOps<nn::ReductionOpInterface>();
  for (Value value : body.front().getTerminator()->getOperands())
    isEpilogue.push_back(!reductions.empty() && isBehind(value, *reductions.begin()));
  if (!llvm::is_contained(isEpilogue, true)) {
    first.emplace(body);
    return;
  }
  OwningOpRef<Operation *> before = ClusterRunner::moduleOf(body),
                           after = ClusterRunner::moduleOf(body);
  Region &reducing = ClusterRunner::bodyIn(*before), &epilogue = ClusterRunner::bodyIn(*after);
  split(reducing.front(), epilogue.front());
  first.emplace(reducing);
  second.emplace(epilogue);
}

/// Of two copies of the cluster, lets the first yield its reductions in place of what is behind
/// them, and the second compute that.
void SplitCluster::split(Block &before, Block &after) {
  SmallVector<Value> kept, behind;
  for (auto [value, copy, follows] : llvm::zip(before.getTerminator()->getOperands(),
                                               after.getTerminator()->getOperands(), isEpilogue))
    (follows ? behind : kept).push_back(follows ? copy : value);
  auto copies = llvm::to_vector(after.getOps<nn::ReductionOpInterface>());
  for (auto [reduction, copy] : llvm::zip(before.getOps<nn::ReductionOpInterface>(), copies)) {
    Value result = reduction->getResult(0);
    reductions.push_back(llvm::find(kept, result) - kept.begin());
    if (reductions.back() == kept.size())
      kept.push_back(result);
    copy->getResult(0).replaceAllUsesWith(after.addArgument(result.getType(), result.getLoc()));
  }
  before.getTerminator()->setOperands(kept);
  after.getTerminator()->setOperands(behind);
  eraseUnused(before);
  eraseUnused(after);
}

std::vector<Tensor> SplitCluster::run(const std::vector<Tensor> &operands) {
  std::vector<Tensor> results = first->run(operands);
  if (!second)
    return results;
  std::vector<Tensor> all = operands;
  for (size_t reduction : reductions)
    all.push_back(results[reduction]);
  std::vector<Tensor> behind = second->run(all), merged;
  size_t nextBefore = 0, nextAfter = 0;
  for (bool follows : isEpilogue)
    merged.push_back(follows ? behind[nextAfter++] : results[nextBefore++]);
  return merged;
}
