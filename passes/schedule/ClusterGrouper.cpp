// One reverse walk joins producers to consumers; a second pass joins siblings that read one tensor
// and have no library kernel between them. Two groups may be one if they agree on iteration space
// and reduced dimensions and are not too many ops, no path leads from one through something outside
// into the other, and nobody inside wants the result of a reduction of either.

#include "passes/schedule/ClusterGrouper.h"

#include "dialects/Comm/Comm.h"
#include "dialects/NN/Role.h"
#include "passes/codegen/WindowPlaces.h"

using namespace mlir;
using namespace dlc;

// Operations of a cluster: more than a few layers have. Planning a cluster recurses as deep, and
// LLVM's time grows with the square of the instructions of a loop.
static constexpr size_t mostOps = 128;

/// Positions of users of an op, in program order; uses have no order that text preserves.
static std::vector<unsigned> positionsOf(ArrayRef<Operation *> users,
                                         const DenseMap<Operation *, unsigned> &positions) {
  std::vector<unsigned> found;
  for (Operation *user : users)
    found.push_back(positions.lookup(user));
  llvm::sort(found);
  found.erase(llvm::unique(found), found.end());
  return found;
}

ClusterGrouper::ClusterGrouper(Block &block, const ClusterRules &rules)
    : rules(rules), counting(block) {
  for (Operation &op : block) {
    positions[&op] = static_cast<unsigned>(ops.size());
    ops.push_back(&op);
  }
  std::vector<std::vector<unsigned>> users;
  for (Operation *op : ops)
    users.push_back(positionsOf(rules.usersThroughCasts(op), positions));
  graph.emplace(std::move(users));
  all.resize(ops.size());
  for (unsigned position = ops.size(); position-- > 0;) {
    Operation *op = ops[position];
    if (!rules.isClusterOp(op) || (rules.isCopied(op) && !rules.needsMemory(op)))
      continue;
    addOp(position);
    joinUsers(position);
  }
  joinSiblings(block);
}

SmallVector<unsigned> ClusterGrouper::membersOf(unsigned group) const {
  auto span = graph->members(group);
  SmallVector<unsigned> members(span.begin(), span.end());
  llvm::sort(members);
  return members;
}

std::vector<ClusterGroup> ClusterGrouper::groups() const {
  std::vector<ClusterGroup> result(ops.size()); // by the last op
  for (unsigned node = 0; node < all.size(); ++node)
    if (isGroup(node)) {
      SmallVector<unsigned> members = membersOf(node);
      result[members.back()] = llvm::map_to_vector(members, [&](unsigned op) { return ops[op]; });
    }
  llvm::erase_if(result, [](const ClusterGroup &group) { return group.empty(); });
  return result;
}

void ClusterGrouper::addOp(unsigned position) {
  Operation *op = ops[position];
  Group &group = all[position];
  group.lead = position;
  group.space = nn::tensorType(op->getResult(0));
  if (auto reduction = dyn_cast<nn::ReductionOpInterface>(op)) {
    group.kept = std::exchange(group.space, nn::tensorType(op->getOperand(0)));
    group.reductions.push_back(position);
    group.reducedDims.assign(reduction.getDims().begin(), reduction.getDims().end());
  } else {
    group.elementwise = op->hasTrait<nn::Elementwise>();
  }
  group.closed = op->hasTrait<nn::StaysAlone>();
  if (counting.contains(op))
    group.part = StepPart::Count;
  else if (nn::phaseOf(op) == nn::Phase::Update)
    group.part = StepPart::Update;
  auto grad = dyn_cast<nn::MaxPoolGradOp>(op);
  if (grad)
    group.windows = grad.getKernelAttr();
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isGathered(operand))
      continue;
    group.closed |= grad || isa<nn::ConvGradFilterOp>(op);
    if (Operation *producer = operand.get().getDefiningOp())
      group.gathered.push_back(positions.lookup(producer));
  }
}

void ClusterGrouper::joinUsers(unsigned position) {
  for (unsigned user : graph->users(position))
    tryJoin(graph->find(position), graph->find(user));
}

/// Groups that read the same tensor, in the same stretch between two library kernels, read it once.
void ClusterGrouper::joinSiblings(Block &block) {
  SmallVector<unsigned> stretches(ops.size());
  unsigned number = 0;
  for (auto [index, op] : llvm::enumerate(block)) {
    number += (hasRequest(&op) && !rules.isClusterOp(&op)) ||
              isa<comm::StartOp, comm::WaitOp, comm::AllReduceOp>(op);
    stretches[index] = number;
  }
  for (BlockArgument argument : block.getArguments())
    joinReaders(argument, stretches);
  for (Operation &op : block)
    for (Value result : op.getResults())
      if (!rules.isCopied(&op) && nn::tensorType(result).getRank() > 0)
        joinReaders(result, stretches);
}

void ClusterGrouper::joinReaders(Value value, ArrayRef<unsigned> stretches) {
  std::vector<unsigned> readers = positionsOf(rules.usersThroughCasts(value), positions);
  // Joining does not change the stretch of a group.
  auto stretchOf = [&](unsigned reader) { return stretches[all[graph->find(reader)].lead]; };
  llvm::DenseMap<unsigned, SmallVector<unsigned>> together;
  llvm::erase_if(readers, [&](unsigned reader) { return !isGroup(graph->find(reader)); });
  for (unsigned reader : readers)
    together[stretchOf(reader)].push_back(reader);
  llvm::SmallDenseSet<unsigned> settled; // groups that could join no other since the last join
  for (unsigned reader : readers) {
    if (settled.contains(graph->find(reader)))
      continue;
    bool joined = false;
    for (unsigned other : together[stretchOf(reader)])
      joined |= tryJoin(graph->find(reader), graph->find(other));
    if (joined)
      settled.clear();
    else
      settled.insert(graph->find(reader));
  }
}

bool ClusterGrouper::tryJoin(unsigned a, unsigned b) {
  if (a == b || !isGroup(a) || !isGroup(b) || !refusal(a, b).empty())
    return false;
  Group into = std::exchange(all[a], {}), from = std::exchange(all[b], {});
  if (mayFollow(into, from))
    std::swap(into, from);
  if (!from.reductions.empty()) {
    into.reducedDims = from.reducedDims;
    into.kept = from.kept;
  }
  into.reductions.append(from.reductions);
  into.gathered.append(from.gathered);
  into.elementwise &= from.elementwise;
  if (from.windows)
    into.windows = from.windows;
  all[graph->join(a, b)] = std::move(into);
  return true;
}

StringRef ClusterGrouper::refusal(unsigned a, unsigned b) {
  if (StringRef reason = disagreement(all[a], all[b]); !reason.empty())
    return reason;
  if (graph->members(a).size() + graph->members(b).size() > mostOps)
    return "one kernel would be too long";
  if (gathersFromItself(a, b))
    return "what is gathered from has to be in memory";
  if (readsReduction(a, b))
    return "a reduction is complete only when its cluster is";
  return graph->isSeparated(a, b) ? "something between them runs outside of clusters" : "";
}

StringRef ClusterGrouper::disagreement(const Group &a, const Group &b) const {
  if (a.closed || b.closed)
    return "data movement stays alone";
  if (a.part != b.part)
    return a.part == StepPart::Count || b.part == StepPart::Count
               ? "the backward pass needs what one of them counts over the whole batch"
               : "one of them changes variables, once a step";
  if (mayFollow(a, b) || mayFollow(b, a))
    return "";
  if (a.space.getShape() != b.space.getShape())
    return "their iteration spaces differ";
  if (a.space.getEncoding() != b.space.getEncoding())
    return "their layouts differ";
  if (a.windows && b.windows && a.windows != b.windows)
    return "their windows of pooling differ";
  if (!a.reductions.empty() && !b.reductions.empty() && a.reducedDims != b.reducedDims)
    return "they reduce different dimensions";
  return "";
}

/// True if a group can be the epilogue of another.
bool ClusterGrouper::mayFollow(const Group &group, const Group &reducing) const {
  return rules.knowsEpilogues() && reducing.kept && !reducing.reducedDims.empty() && !group.kept &&
         group.elementwise && nn::haveOneSpace(group.space, reducing.kept);
}

/// True of an op that has the space which reductions keep, and so is behind them: unless they
/// reduce nothing, it is another one than that of what they reduce.
static bool isBehind(Operation *op, RankedTensorType kept) {
  return !isa<nn::ReductionOpInterface>(op) &&
         nn::haveOneSpace(nn::tensorType(op->getResult(0)), kept);
}

/// True if one of two groups computes what either gathers from.
bool ClusterGrouper::gathersFromItself(unsigned a, unsigned b) {
  return llvm::any_of(llvm::concat<unsigned>(all[a].gathered, all[b].gathered),
                      [&](unsigned producer) {
                        unsigned group = graph->find(producer);
                        return group == a || group == b;
                      });
}

/// True if anything of two groups other than an epilogue wants the result of a reduction of either.
bool ClusterGrouper::readsReduction(unsigned a, unsigned b) const {
  const Group &reducing = all[a].kept ? all[a] : all[b];
  SmallVector<unsigned> behind(all[a].reductions);
  llvm::append_range(behind, all[b].reductions);
  llvm::SmallDenseSet<unsigned> seen;
  while (!behind.empty())
    for (unsigned user : graph->users(behind.pop_back_val())) {
      if (graph->find(user) != a && graph->find(user) != b)
        continue;
      if (reducing.reducedDims.empty() || !isBehind(ops[user], reducing.kept))
        return true;
      if (seen.insert(user).second)
        behind.push_back(user);
    }
  return false;
}

void ClusterGrouper::explain(llvm::function_ref<void(Operation *, Operation *, StringRef)> report) {
  for (unsigned node = 0; node < all.size(); ++node)
    if (isGroup(node))
      for (unsigned op : membersOf(node))
        for (unsigned user : graph->users(op))
          if (unsigned other = graph->find(user); isGroup(other) && other != node)
            if (StringRef reason = refusal(node, other); !reason.empty())
              report(ops[op], ops[user], reason);
}
