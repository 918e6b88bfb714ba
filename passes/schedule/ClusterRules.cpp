#include "passes/schedule/ClusterRules.h"

#include "passes/codegen/WindowPlaces.h"

using namespace mlir;
using namespace dlc;

ClusterRules::ClusterRules(Block &block, TargetKernels &kernels)
    : epilogues(kernels.description().loops.epilogues) {
  // A product has a kernel to itself, whoever implements it (dlc-plan-kernels).
  for (Operation &op : block)
    if (hasRequest(&op) && !isa<nn::MatmulOp>(op) && kernels.isGenerated(&op))
      generated.insert(&op);
}

/// True if a cluster gathers from an op's result, or from a slice of it.
bool ClusterRules::isGatheredFrom(Operation *op) const {
  return llvm::any_of(op->getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    return isa<nn::SliceOp>(user) ? isGatheredFrom(user) : isClusterOp(user) && isGathered(use);
  });
}

bool ClusterRules::needsMemory(Operation *op) const {
  return llvm::any_of(op->getUsers(), [&](Operation *user) { return !isClusterOp(user); }) ||
         (!isa<nn::SliceOp>(op) && isGatheredFrom(op));
}

/// A cast whose result is larger than its operand and is not needed in memory.
bool ClusterRules::isCopiedCast(Operation *op) const {
  auto cast = dyn_cast<nn::CastOp>(op);
  return cast &&
         nn::elementBytes(nn::tensorType(cast.getY()).getElementType()) >
             nn::elementBytes(nn::tensorType(cast.getX()).getElementType()) &&
         !needsMemory(op);
}

bool ClusterRules::isCopied(Operation *op) const {
  return isCopiedCast(op) || op->hasTrait<nn::CopiedToReaders>();
}

SmallVector<Operation *> ClusterRules::usersThroughCasts(Value value) const {
  SmallVector<Operation *> users;
  for (Operation *user : value.getUsers()) {
    if (isCopiedCast(user))
      llvm::append_range(users, usersThroughCasts(user));
    else
      users.push_back(user);
  }
  return users;
}

SmallVector<Operation *> ClusterRules::usersThroughCasts(Operation *op) const {
  SmallVector<Operation *> users;
  for (Value result : op->getResults())
    llvm::append_range(users, usersThroughCasts(result));
  return users;
}

bool ClusterRules::isClusterOp(Operation *op) const {
  if (hasRequest(op))
    return generated.contains(op);
  return op->hasTrait<nn::Elementwise>() || isa<nn::ReductionOpInterface>(op) || isCopied(op) ||
         op->hasTrait<nn::StaysAlone>();
}
