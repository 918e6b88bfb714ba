// dlc-fuse: first kernels get their epilogues, then the ops for generated code become
// clusters. ClusterGrouper forms the groups; here groups become nn.fused ops, and the block gets an
// order that respects them.

#include "dialects/NN/Role.h"
#include "passes/Passes.h"
#include "passes/codegen/WindowPlaces.h"
#include "passes/planning/BlockOrder.h"
#include "passes/schedule/ClusterGrouper.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

#include <limits>

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_FUSE
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
/// Nanoseconds of the cheapest kernel of an op, with or without a ReLU; infinite if there is none.
double costOf(nn::EpilogueOpInterface op, bool relu, TargetKernels &kernels) {
  rt::KernelRequest request = *kernels.request(op);
  request.relu = relu;
  rt::CandidateList list = kernels.candidates(op, request);
  return list.candidates.empty() ? std::numeric_limits<double>::infinity()
                                 : list.candidates.front().nanoseconds;
}

/// relu(op(x)) = op(x) with its relu attribute, if nothing else reads op's result and a kernel
/// takes the ReLU for less than a pass over the result.
void fuseRelu(nn::ReluOp relu, TargetKernels &kernels) {
  auto producer = relu.getX().getDefiningOp<nn::EpilogueOpInterface>();
  if (!producer || !relu.getX().hasOneUse() || producer.getRelu())
    return;
  auto bytes = static_cast<uint64_t>(nn::physicalBytes(relu.getType()));
  double pass = kernels.generatedCost(2 * bytes, 0) - kernels.generatedCost(0, 0);
  if (costOf(producer, true, kernels) > costOf(producer, false, kernels) + pass)
    return;
  producer.setRelu(true);
  relu.getY().replaceAllUsesWith(relu.getX());
  relu.erase();
}

/// Builds the nn.fused of one group behind its last op.
class ClusterBuilder {
public:
  ClusterBuilder(const ClusterGroup &group, const ClusterRules &rules)
      : group(group), rules(rules) {
    inGroup.insert(group.begin(), group.end());
  }

  nn::FusedOp build() {
    SmallVector<Value> results;
    for (Operation *op : group)
      for (Value result : op->getResults())
        if (llvm::any_of(rules.usersThroughCasts(result),
                         [&](Operation *user) { return !inGroup.contains(user); }))
          results.push_back(result);
    OpBuilder builder(group.back());
    builder.setInsertionPointAfter(group.back());
    auto fused = nn::FusedOp::create(builder, locationOf(results.back()),
                                     TypeRange(ValueRange(results)), ValueRange());
    body = &fused.getBody().emplaceBlock();
    inner = std::make_unique<OpBuilder>(OpBuilder::atBlockEnd(body));
    for (Operation *op : group)
      copy(op);
    SmallVector<Value> yielded =
        llvm::map_to_vector(results, [&](Value v) { return mapping.lookup(v); });
    nn::YieldOp::create(*inner, fused.getLoc(), yielded);
    nn::setRole(fused, role());
    fused->setOperands(inputs);
    for (auto [value, result] : llvm::zip(results, fused.getResults()))
      value.replaceUsesWithIf(result,
                              [&](OpOperand &use) { return !inGroup.contains(use.getOwner()); });
    return fused;
  }

private:
  /// What the forward pass has for the backward pass alone runs there.
  nn::Role role() const {
    nn::Role role = nn::mergedRole(group);
    if (llvm::any_of(group, [](Operation *op) { return nn::phaseOf(op) == nn::Phase::Backward; }))
      role.phase = nn::Phase::Backward;
    return role;
  }

  /// A cluster has the name of the last value that it yields, by which the layer is known. A
  /// constant that folding made belongs to no layer; then the name is that of its first reader.
  Location locationOf(Value result) const {
    if (!nn::layerName(result.getLoc()).empty())
      return result.getLoc();
    Operation *first = nullptr;
    for (Operation *user : rules.usersThroughCasts(result))
      if (!inGroup.contains(user) && !nn::layerName(user->getLoc()).empty() &&
          (!first || user->isBeforeInBlock(first)))
        first = user;
    return first ? first->getLoc() : result.getLoc();
  }

  void copy(Operation *op) {
    if (mapping.contains(op->getResult(0)))
      return;
    SmallVector<std::pair<unsigned, Value>> gathered;
    for (OpOperand &operand : op->getOpOperands()) {
      if (isGathered(operand))
        gathered.emplace_back(operand.getOperandNumber(), inMemory(operand.get()));
      else
        bring(operand.get());
    }
    Operation *copied = inner->clone(*op, mapping);
    copied->removeAttr(nn::roleName); // the cluster has it
    for (auto [number, value] : gathered)
      copied->setOperand(number, value);
  }

  /// Makes an operand known inside: a member is there already, a free op is copied, anything else
  /// becomes an argument.
  void bring(Value value) {
    if (mapping.contains(value))
      return;
    Operation *op = value.getDefiningOp();
    if (op && rules.isCopied(op) && !inGroup.contains(op))
      copy(op);
    else
      mapping.map(value, argumentFor(value));
  }

  /// What is gathered from: an argument, or slices of one.
  Value inMemory(Value value) {
    auto slice = value.getDefiningOp<nn::SliceOp>();
    if (!slice)
      return argumentFor(value);
    Operation *copied = inner->clone(*slice);
    copied->removeAttr(nn::roleName);
    copied->setOperand(0, inMemory(slice.getX()));
    return copied->getResult(0);
  }

  BlockArgument argumentFor(Value value) {
    auto known = llvm::find(inputs, value);
    if (known != inputs.end())
      return body->getArgument(known - inputs.begin());
    inputs.push_back(value);
    return body->addArgument(value.getType(), value.getLoc());
  }

  const ClusterGroup &group;
  const ClusterRules &rules;
  llvm::SmallPtrSet<Operation *, 16> inGroup;
  Block *body = nullptr;
  std::unique_ptr<OpBuilder> inner;
  IRMapping mapping;
  SmallVector<Value> inputs;
};

class FusePass : public dlc::impl::FuseBase<FusePass> {
public:
  using Base::Base;
  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Schedule)))
      return signalPassFailure();
    std::unique_ptr<TargetKernels> kernels = TargetKernels::open(getOperation());
    if (!kernels)
      return signalPassFailure();
    getOperation().walk([&](nn::ReluOp relu) { fuseRelu(relu, *kernels); });
    for (auto program : getOperation().getBody().getOps<nn::ProgramOp>()) {
      Block &block = program.getBody().front();
      formClusters(block, ClusterRules(block, *kernels));
    }
  }

private:
  /// False for dead code.
  static bool isRead(const ClusterGroup &group, const ClusterRules &rules) {
    llvm::SmallPtrSet<Operation *, 16> inGroup(group.begin(), group.end());
    return llvm::any_of(group, [&](Operation *op) {
      return llvm::any_of(rules.usersThroughCasts(op),
                          [&](Operation *user) { return !inGroup.contains(user); });
    });
  }

  /// Erases a copied op and those behind it, all without other users.
  static void eraseUnused(Operation *op) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      eraseUnused(user);
    op->erase();
  }

  static void explain(ClusterGrouper &grouper) {
    grouper.explain([](Operation *op, Operation *user, StringRef reason) {
      remark::missed(op->getLoc(), remark::RemarkOpts::name("stored").category("dlc-fuse"))
          << op->getName().getStringRef().str() + " is stored for " +
                 user->getName().getStringRef().str() + ": " + reason.str();
    });
  }

  void formClusters(Block &block, const ClusterRules &rules) {
    ClusterGrouper grouper(block, rules);
    if (getContext().getRemarkEngine())
      explain(grouper);
    for (const ClusterGroup &group : grouper.groups()) {
      if (isRead(group, rules))
        ClusterBuilder(group, rules).build();
      for (Operation *op : llvm::reverse(group))
        op->dropAllReferences();
      for (Operation *op : llvm::reverse(group)) {
        // The users that are left are ops that clusters have copied.
        for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
          eraseUnused(user);
        op->erase();
      }
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (rules.isCopied(&op) && op.use_empty())
        op.erase();
    // Operands come before users; apart from that the order changes as little as possible.
    applyOrder(block, orderBlock(block, [](Operation *) { return OrderKey(); }));
  }
};
} // namespace
