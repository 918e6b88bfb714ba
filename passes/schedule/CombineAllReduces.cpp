// Operands of all collectives are listed in the order in which their producers run, planBuckets
// divides the list, and each bucket becomes one collective behind its last producer. Users that
// stood in between sink behind it.

#include "dialects/NN/Role.h"
#include "passes/Passes.h"
#include "passes/planning/BlockOrder.h"
#include "passes/planning/BucketLayout.h"
#include "passes/planning/BucketPlanner.h"
#include "passes/planning/CountingOps.h"
#include "passes/planning/OverlapSimulator.h"
#include "passes/planning/TargetKernels.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_COMBINEALLREDUCES
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {

/// Long enough that the latency is at most some percent, short enough that the first leaves early;
/// the last one as short as pays, since nothing is left to hide it behind.
BucketLimits limitsFor(const Link &link) {
  double inFlight = link.latencyMicroseconds * 1e-6 * link.gbitPerSecond * 1e9 / 8; // bytes
  constexpr double kilobyte = 1 << 10, megabyte = 1 << 20;
  return {static_cast<uint64_t>(std::clamp(50 * inFlight, megabyte, 25 * megabyte)),
          static_cast<uint64_t>(std::clamp(5 * inFlight, 64 * kilobyte, megabyte))};
}

/// One operand of a collective.
struct Member {
  comm::AllReduceOp op;
  unsigned index;
  unsigned producer; // position in the program
  Value input() { return op.getInputs()[index]; }
  Value output() { return op.getOutputs()[index]; }
  /// What is reduced, for messages: for a variable, or of a layer.
  Attribute name() {
    if (std::optional<ArrayAttr> names = op.getMembers())
      return (*names)[index];
    if (FlatSymbolRefAttr variable = nn::roleOf(op).variable)
      return variable;
    return StringAttr::get(op.getContext(), nn::layerName(input().getLoc()));
  }
};

struct CombineAllReducesPass : dlc::impl::CombineAllReducesBase<CombineAllReducesPass> {
  using Base::Base;
  using Kernels = std::unique_ptr<TargetKernels>; // opened for the first copy, if there is one

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Schedule)))
      return signalPassFailure();
    FailureOr<Link> parsed = parseLink(getOperation(), link);
    if (failed(parsed))
      return signalPassFailure();
    limits = limitsFor(*parsed);
    if (bucketSize)
      limits.bytes = bucketSize;
    getOperation()->setAttr("bucket_size", Builder(&getContext()).getI64IntegerAttr(bucketSize));
    Kernels opened;
    for (auto program : getOperation().getBody().getOps<nn::ProgramOp>())
      if (failed(combine(program.getBody().front(), opened)))
        return signalPassFailure();
  }

  LogicalResult combine(Block &block, Kernels &opened) {
    positions.clear();
    for (auto [index, op] : llvm::enumerate(block))
      positions[&op].position = static_cast<double>(index);
    std::vector<Member> members = membersOf(block);
    std::vector<Reduction> reductions = describe(block, members);
    llvm::SmallSetVector<Operation *, 16> replaced;
    for (const Bucket &bucket : planBuckets(reductions, limits)) {
      SmallVector<Member> own;
      for (unsigned index : bucket.members)
        own.push_back(members[index]);
      if (failed(build(own, opened)))
        return failure();
      for (Member &member : own)
        replaced.insert(member.op);
    }
    for (Operation *op : replaced)
      op->erase();
    applyOrder(block, orderBlock(block, [&](Operation *op) { return positions.lookup(op); }));
    return success();
  }

  /// In the order in which they become ready.
  std::vector<Member> membersOf(Block &block) {
    std::vector<Member> members;
    for (auto op : block.getOps<comm::AllReduceOp>())
      for (auto [index, input] : llvm::enumerate(op.getInputs())) {
        Operation *producer = input.getDefiningOp();
        auto position = producer ? static_cast<unsigned>(positions[producer].position) : 0u;
        members.push_back({op, static_cast<unsigned>(index), position});
      }
    llvm::sort(members, [&](const Member &a, const Member &b) {
      auto key = [&](const Member &it) {
        return std::tuple(it.producer, positions.lookup(it.op).position, it.index);
      };
      return key(a) < key(b);
    });
    return members;
  }

  std::vector<Reduction> describe(Block &block, std::vector<Member> &members) {
    llvm::DenseMap<Value, unsigned> outputs;
    for (auto [index, member] : llvm::enumerate(members))
      outputs[member.output()] = static_cast<unsigned>(index);
    // Which reductions each op depends on.
    llvm::DenseMap<Operation *, llvm::BitVector> needs;
    auto needsOf = [&](Value value) {
      llvm::BitVector set(static_cast<unsigned>(members.size()));
      if (auto output = outputs.find(value); output != outputs.end()) {
        set = needs.lookup(value.getDefiningOp());
        set.set(output->second);
      } else if (Operation *op = value.getDefiningOp()) {
        set = needs.lookup(op);
      }
      return set;
    };
    for (Operation &op : block) {
      llvm::BitVector set(static_cast<unsigned>(members.size()));
      for (Value operand : op.getOperands())
        set |= needsOf(operand);
      needs[&op] = set;
    }
    // What the pass waits for (no variable's) does not travel with what the update waits for, nor
    // what it counts with what it computes.
    CountingOps counting(block);
    SmallVector<std::tuple<Type, std::optional<Type>, bool, bool>> formats;
    std::vector<Reduction> reductions;
    for (Member &member : members) {
      RankedTensorType type = nn::tensorType(member.input());
      std::tuple format(type.getElementType(), member.op.getWire(),
                        nn::roleOf(member.op).variable != nullptr, counting.contains(member.op));
      auto known = llvm::find(formats, format);
      auto number = static_cast<unsigned>(known - formats.begin());
      if (known == formats.end())
        formats.push_back(format);
      int64_t bytes = BucketLayout::sliceBytes(nn::physicalBytes(type));
      Reduction reduction{static_cast<uint64_t>(bytes), number, {}};
      llvm::BitVector needed = needsOf(member.input());
      for (unsigned dependency : needed.set_bits())
        reduction.dependencies.push_back(dependency);
      reductions.push_back(reduction);
    }
    return reductions;
  }

  LogicalResult build(MutableArrayRef<Member> bucket, Kernels &opened) {
    OpBuilder builder(bucket.back().op);
    SmallVector<Value> inputs;
    SmallVector<Location> locations;
    SmallVector<Attribute> names;
    SmallVector<Operation *> ops;
    double position = 0;
    for (Member &member : bucket) {
      FailureOr<Value> input = ownInput(builder, member, opened);
      if (failed(input))
        return failure();
      inputs.push_back(*input);
      locations.push_back(member.op.getLoc());
      names.push_back(member.name());
      ops.push_back(member.op);
      position = std::max(position, positions[input->getDefiningOp()].position);
    }
    auto combined =
        comm::AllReduceOp::create(builder, builder.getFusedLoc(locations), ValueRange(inputs),
                                  bucket.front().op.getWireAttr(), builder.getArrayAttr(names));
    nn::setRole(combined, nn::mergedRole(ops));
    positions[combined] = {0, position + 0.25};
    for (auto [member, output] : llvm::zip(bucket, combined.getOutputs()))
      member.output().replaceAllUsesWith(output);
    return success();
  }

  /// The member's input, or a copy where the input cannot live in the bucket.
  FailureOr<Value> ownInput(OpBuilder &builder, Member &member, Kernels &opened) {
    Value input = member.input();
    if (isOwnResult(input))
      return input;
    if (!opened && !(opened = TargetKernels::open(getOperation())))
      return failure();
    auto copy = nn::FusedOp::create(builder, member.op.getLoc(), TypeRange(input.getType()), input);
    Block &body = copy.getBody().emplaceBlock();
    body.addArgument(input.getType(), input.getLoc());
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    nn::YieldOp::create(inner, copy.getLoc(), body.getArguments());
    if (failed(opened->planCluster(copy)))
      return failure();
    nn::setRole(copy, nn::roleOf(member.op));
    positions[copy] = {0, member.producer + 0.125};
    remark::missed(input.getLoc(), remark::RemarkOpts::name("in-place").category("dlc-buckets"))
        << "is copied into its bucket: the value before the all-reduce has other users";
    return copy.getResult(0);
  }

  BucketLimits limits{};
  llvm::DenseMap<Operation *, OrderKey> positions;
};

} // namespace
