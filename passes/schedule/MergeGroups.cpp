// A weight of G groups is [G a, b, K...]; with m of them merged it is [G a, m b, K...], whose
// element (j a + p, i b + q), of output j and input i of a merged group, is zero unless i = j.

#include "passes/schedule/MergeGroups.h"

#include "dialects/NN/OpChain.h"
#include "dialects/NN/Role.h"

using namespace mlir;
using namespace dlc;
using rt::KernelRequest;

namespace {

/// A convolution's weight while m of its groups are one.
struct MergedWeight {
  MergedWeight(RankedTensorType type, int64_t groups, int64_t merged) : type(type), merged(merged) {
    ArrayRef<int64_t> shape = type.getShape();
    int64_t taps = 1;
    for (int64_t extent : shape.drop_front(2))
      taps *= extent;
    split = {groups / merged, merged, shape[0] / groups, shape[1] * taps};
    wide = {split[0], merged, split[2], merged, split[3]};
  }

  RankedTensorType mergedType() const {
    SmallVector<int64_t> shape(type.getShape());
    shape[1] *= merged;
    return type.clone(shape);
  }

  Value expand(nn::OpChain &ops, Value weight) const {
    auto target = RankedTensorType::get(wide, type.getElementType());
    Value everywhere = nn::BroadcastOp::create(ops.builder, ops.loc, target,
                                               ops.reshaped(weight, split), {0, 1, 2, 4});
    return ops.reshaped(onDiagonal(ops, everywhere), mergedType().getShape());
  }
  /// The elements that expand() spreads: the gradient of the weight from that of what it gives.
  Value contract(nn::OpChain &ops, Value gradient) const {
    Value diagonal = onDiagonal(ops, ops.reshaped(gradient, wide));
    return ops.reshaped(ops.sum(diagonal, {3}), type.getShape());
  }

private:
  /// Zero between different groups.
  Value onDiagonal(nn::OpChain &ops, Value x) const {
    auto index = nn::tensorType(x).clone(ops.builder.getI32Type());
    Value output = nn::IotaOp::create(ops.builder, ops.loc, index, 1);
    Value input = nn::IotaOp::create(ops.builder, ops.loc, index, 3);
    Value same = nn::CompareOp::create(ops.builder, ops.loc, nn::Comparison::EQ, output, input);
    return ops.make<nn::SelectOp>(same, x, ops.constant(x, 0));
  }

  RankedTensorType type; // of the weight as the model has it
  int64_t merged;
  SmallVector<int64_t> split, wide;
};

class GroupMerger {
public:
  explicit GroupMerger(TargetKernels &kernels) : kernels(kernels) {}

  void visit(Operation *op) {
    std::optional<KernelRequest> request = kernels.request(op);
    if (!request || request->groups < 2)
      return;
    size_t weight = *rt::weightOperand(request->op);
    int64_t merged = cheapest(op, *request, weight);
    if (merged > 1)
      merge(op, request->groups, weight, merged);
  }

private:
  /// How many groups to make one of: a power of two, 1 if nothing is gained. Generated code has no
  /// use for larger ones.
  int64_t cheapest(Operation *op, KernelRequest request, size_t weight) {
    for (rt::OperandType &operand : request.operands) {
      operand.layout.reset();
      if (operand.shape.size() < 3)
        operand.layout = rt::Layout::rowMajor(operand.shape.size());
    }
    rt::CandidateList list;
    auto costOf = [&](const KernelRequest &asked) {
      list = kernels.candidates(op, asked);
      return list.candidates.empty() ? std::numeric_limits<double>::infinity()
                                     : list.candidates.front().nanoseconds;
    };
    auto bytes = static_cast<uint64_t>(nn::physicalBytes(
        nn::tensorType(weight < op->getNumOperands() ? op->getOperand(weight) : op->getResult(0))));
    int64_t best = 1;
    double least = costOf(request);
    if (!list.candidates.empty() && list.candidates.front().implementation == generatedName)
      return best;
    std::vector<int64_t> &shape = request.operands[weight].shape;
    for (int64_t merged = 2; request.groups % 2 == 0; merged *= 2) {
      request.groups /= 2;
      shape[1] *= 2;
      // The weight is written once more, or read.
      double cost =
          costOf(request) + kernels.generatedCost(2 * bytes * static_cast<uint64_t>(merged), 0);
      if (cost >= least)
        continue;
      least = cost;
      best = merged;
    }
    return best;
  }

  void merge(Operation *op, int64_t groups, size_t position, int64_t merged) {
    nn::Role role = nn::roleOf(op);
    nn::RoleStamp stamp(role);
    OpBuilder builder(op->getContext(), &stamp);
    nn::OpChain ops(builder, op);
    op->setAttr("groups", builder.getI64IntegerAttr(groups / merged));
    if (position < op->getNumOperands()) {
      Value weight = op->getOperand(position);
      builder.setInsertionPoint(op);
      Value &expanded = weights[{weight, merged}];
      if (!expanded)
        expanded = MergedWeight(nn::tensorType(weight), groups, merged).expand(ops, weight);
      op->setOperand(position, expanded);
      return;
    }
    Value gradient = op->getResult(0);
    MergedWeight weight(nn::tensorType(gradient), groups, merged);
    gradient.setType(weight.mergedType());
    // What follows is the gradient of the variable.
    nn::setRole(op, {role.phase, role.kind});
    builder.setInsertionPointAfter(op);
    SmallPtrSet<Operation *, 4> users(gradient.user_begin(), gradient.user_end());
    Value contracted = weight.contract(ops, gradient);
    gradient.replaceUsesWithIf(contracted,
                               [&](OpOperand &use) { return users.contains(use.getOwner()); });
  }

  TargetKernels &kernels;
  /// Forward and backward pass of a layer read the same weight. By what is expanded, and how far.
  llvm::DenseMap<std::pair<Value, int64_t>, Value> weights;
};

} // namespace

void dlc::mergeGroups(nn::ModelOp model, TargetKernels &kernels) {
  for (auto program : model.getBody().getOps<nn::ProgramOp>()) {
    GroupMerger merger(kernels);
    for (Operation &op : llvm::make_early_inc_range(program.getBody().front()))
      merger.visit(&op);
  }
}
