// One reverse walk joins producers to consumers; a second pass joins siblings that read one tensor
// and have no library kernel between them. Two groups may be one if they agree on iteration space
// and reduced dimensions, no path leads from one through something outside into the other, and
// nobody inside wants the result of a reduction of either.

#include "passes/ClusterGrouper.h"

#include "passes/KernelRequests.h"

#include "dialects/Comm/Comm.h"

using namespace mlir;
using namespace dlc;

static bool isReduction(Operation *op) { return isa<nn::ReduceSumOp, nn::ReduceMaxOp>(op); }

/// True if something other than a cluster reads the result of an op.
static bool needsMemory(Operation *op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) { return !isClusterOp(user); });
}

/// A cast whose result takes more memory than its operand, which nobody needs in memory.
static bool isCopiedCast(Operation *op) {
  auto cast = dyn_cast<nn::CastOp>(op);
  return cast &&
         nn::elementBytes(nn::tensorType(cast.getY()).getElementType()) >
             nn::elementBytes(nn::tensorType(cast.getX()).getElementType()) &&
         !needsMemory(op);
}

bool dlc::isCopiedIntoClusters(Operation *op) {
  return isCopiedCast(op) ||
         isa<nn::ConstantOp, nn::IotaOp, nn::BroadcastOp, nn::SliceOp, nn::PadOp>(op);
}

SmallVector<Operation *> dlc::usersThroughCasts(Value value) {
  SmallVector<Operation *> users;
  for (Operation *user : value.getUsers()) {
    if (isCopiedCast(user))
      llvm::append_range(users, usersThroughCasts(user));
    else
      users.push_back(user);
  }
  return users;
}

SmallVector<Operation *> dlc::usersThroughCasts(Operation *op) {
  SmallVector<Operation *> users;
  for (Value result : op->getResults())
    llvm::append_range(users, usersThroughCasts(result));
  return users;
}

bool dlc::isClusterOp(Operation *op) {
  return op->hasTrait<nn::Elementwise>() || isReduction(op) || isCopiedIntoClusters(op) ||
         isa<nn::ConcatOp, nn::TransposeOp>(op) ||
         (isa<nn::ReorderOp, nn::MaxPoolOp, nn::MaxPoolGradOp>(op) && !isLibraryOp(op));
}

ClusterGrouper::ClusterGrouper(Block &block) {
  for (auto [index, op] : llvm::enumerate(block))
    position[&op] = static_cast<unsigned>(index);
  for (Operation &op : llvm::reverse(block)) {
    if (!isClusterOp(&op) || (isCopiedIntoClusters(&op) && !needsMemory(&op)))
      continue;
    addOp(&op);
    joinUsers(&op);
  }
  joinSiblings(block);
}

std::vector<ClusterGroup> ClusterGrouper::groups() const {
  std::vector<ClusterGroup> result;
  for (ClusterGroup group : all) {
    if (group.ops.empty())
      continue;
    sortByPosition(group.ops);
    result.push_back(std::move(group));
  }
  llvm::sort(result, [&](const ClusterGroup &a, const ClusterGroup &b) {
    return position.lookup(a.ops.back()) < position.lookup(b.ops.back());
  });
  return result;
}

unsigned ClusterGrouper::groupOf(Operation *op) const {
  auto found = members.find(op);
  return found == members.end() ? ~0u : found->second;
}

void ClusterGrouper::addOp(Operation *op) {
  ClusterGroup group;
  group.ops.push_back(op);
  group.first = group.last = position.lookup(op);
  group.reduces = isReduction(op);
  group.space = nn::tensorType(group.reduces ? op->getOperand(0) : op->getResult(0));
  if (auto sum = dyn_cast<nn::ReduceSumOp>(op))
    group.reducedDims.assign(sum.getDims().begin(), sum.getDims().end());
  if (auto max = dyn_cast<nn::ReduceMaxOp>(op))
    group.reducedDims.assign(max.getDims().begin(), max.getDims().end());
  group.closed = isa<nn::ConcatOp, nn::TransposeOp, nn::ReorderOp>(op);
  if (auto grad = dyn_cast<nn::MaxPoolGradOp>(op))
    group.windows = grad.getKernelAttr();
  members[op] = static_cast<unsigned>(all.size());
  all.push_back(std::move(group));
}

void ClusterGrouper::sortByPosition(SmallVectorImpl<Operation *> &ops) const {
  llvm::sort(ops,
             [&](Operation *a, Operation *b) { return position.lookup(a) < position.lookup(b); });
}

void ClusterGrouper::joinUsers(Operation *op) {
  SmallVector<Operation *> users = usersThroughCasts(op);
  sortByPosition(users);
  for (Operation *user : users)
    if (unsigned group = groupOf(user); group != ~0u && group != groupOf(op))
      tryJoin(groupOf(op), group);
}

/// Groups that read the same tensor, in the same stretch between two library kernels, read it once.
void ClusterGrouper::joinSiblings(Block &block) {
  SmallVector<unsigned> stretch(position.size());
  unsigned number = 0;
  for (auto [index, op] : llvm::enumerate(block)) {
    number += isLibraryOp(&op) || isa<comm::StartOp, comm::WaitOp, comm::AllReduceOp>(op);
    stretch[index] = number;
  }
  auto stretchOf = [&](unsigned group) { return stretch[position.lookup(all[group].ops.front())]; };
  auto joinReaders = [&](Value value) {
    // In an order that text preserves; that of uses is not one.
    SmallVector<Operation *> readers = usersThroughCasts(value);
    sortByPosition(readers);
    for (Operation *a : readers)
      for (Operation *b : readers) {
        unsigned first = groupOf(a), second = groupOf(b);
        if (first != second && first != ~0u && second != ~0u &&
            stretchOf(first) == stretchOf(second))
          tryJoin(first, second);
      }
  };
  for (BlockArgument argument : block.getArguments())
    joinReaders(argument);
  for (Operation &op : block)
    for (Value result : op.getResults())
      if (!isCopiedIntoClusters(&op) && nn::tensorType(result).getRank() > 0)
        joinReaders(result);
}

bool ClusterGrouper::tryJoin(unsigned a, unsigned b) {
  if (!refusal(a, b).empty())
    return false;
  ClusterGroup &into = all[a], &from = all[b];
  for (Operation *op : from.ops)
    members[op] = a;
  into.ops.append(from.ops);
  into.first = std::min(into.first, from.first);
  into.last = std::max(into.last, from.last);
  if (from.reduces)
    into.reducedDims = from.reducedDims;
  into.reduces |= from.reduces;
  if (from.windows)
    into.windows = from.windows;
  from = ClusterGroup();
  return true;
}

StringRef ClusterGrouper::refusal(unsigned a, unsigned b) const {
  if (StringRef reason = disagreement(all[a], all[b]); !reason.empty())
    return reason;
  if (readsReduction(a, b))
    return "a reduction is complete only when its cluster is";
  return isSeparated(a, b) ? "something between them runs outside of clusters" : "";
}

StringRef ClusterGrouper::disagreement(const ClusterGroup &a, const ClusterGroup &b) const {
  if (a.closed || b.closed)
    return "data movement stays alone";
  if (a.space.getShape() != b.space.getShape())
    return "their iteration spaces differ";
  if (a.space.getEncoding() != b.space.getEncoding())
    return "their layouts differ";
  if (a.windows && b.windows && a.windows != b.windows)
    return "their windows of pooling differ";
  if (a.reduces && b.reduces && a.reducedDims != b.reducedDims)
    return "they reduce different dimensions";
  return "";
}

bool ClusterGrouper::readsReduction(unsigned a, unsigned b) const {
  for (unsigned group : {a, b})
    for (Operation *op : all[group].ops)
      if (isReduction(op) && llvm::any_of(usersThroughCasts(op),
                                          [&](Operation *user) { return isInside(user, a, b); }))
        return true;
  return false;
}

/// True if a path leaves one of the groups and enters one of them again.
bool ClusterGrouper::isSeparated(unsigned a, unsigned b) const {
  unsigned last = 0;
  SmallVector<Operation *> pending;
  for (unsigned group : {a, b})
    for (Operation *op : all[group].ops) {
      last = std::max(last, position.lookup(op));
      for (Operation *user : usersThroughCasts(op))
        if (!isInside(user, a, b))
          pending.push_back(user);
    }
  // All of a group runs as one: a path may enter it at one op and leave it at another, earlier one.
  // So it may come back from behind the last op by a group that reaches over it.
  for (unsigned reached = ~0u; reached != last;) {
    reached = last;
    for (const ClusterGroup &group : all)
      if (!group.ops.empty() && group.first <= last)
        last = std::max(last, group.last);
  }
  llvm::SmallPtrSet<Operation *, 32> seen;
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (position.lookup(op) > last || !seen.insert(op).second)
      continue;
    unsigned group = groupOf(op);
    SmallVector<Operation *> alone{op};
    for (Operation *member :
         group == ~0u ? ArrayRef<Operation *>(alone) : ArrayRef<Operation *>(all[group].ops))
      for (Operation *user : usersThroughCasts(member)) {
        if (isInside(user, a, b))
          return true;
        pending.push_back(user);
      }
  }
  return false;
}

void ClusterGrouper::explain(
    llvm::function_ref<void(Operation *, Operation *, StringRef)> report) const {
  for (auto [index, group] : llvm::enumerate(all))
    for (Operation *op : group.ops)
      for (Operation *user : usersThroughCasts(op))
        if (unsigned other = groupOf(user); other != ~0u && other != index)
          if (StringRef reason = refusal(index, other); !reason.empty())
            report(op, user, reason);
}
