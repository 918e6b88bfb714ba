// The view of a cluster's plan that other passes build on: stages with their buffers, scratch, and
// which results may take an operand's memory.

#include "passes/codegen/ClusterPlan.h"
#include "passes/codegen/ProductPlan.h"

using namespace mlir;
using namespace dlc;

/// Elements of a buffer that a stage touches at most.
static int64_t touchedElements(const StagePlan &stage, unsigned buffer, RankedTensorType type) {
  int64_t iterations = 0, once = stage.iterations();
  for (const ClusterNode &node : stage.nodes)
    iterations += node.kind == ClusterNode::Kind::Read && node.buffer == buffer ? once : 0;
  for (const ClusterWrite &write : stage.writes)
    iterations += write.buffer == buffer ? once : 0;
  return std::min(iterations, nn::layoutOf(type).physicalElements(type.getShape().vec()));
}

SmallVector<unsigned> dlc::stageBuffers(const StagePlan &stage, SmallVector<exec::Access> *access) {
  llvm::SetVector<unsigned> reads, writes;
  for (const ClusterNode &node : stage.nodes)
    if (node.kind == ClusterNode::Kind::Read)
      reads.insert(node.buffer);
  for (const ClusterWrite &write : stage.writes)
    writes.insert(write.buffer);
  SmallVector<unsigned> buffers(reads.getArrayRef());
  llvm::append_range(buffers, writes);
  if (access) {
    access->assign(reads.size(), exec::Access::Read);
    access->append(writes.size(), exec::Access::Write);
  }
  return buffers;
}

/// One stage; its buffers are the op's operands, then the result.
static FailureOr<GeneratedKernel> planProductKernel(Block &cluster, nn::MatmulOp op) {
  std::optional<ProductPlan> plan = planProduct(op);
  auto yield = dyn_cast<nn::YieldOp>(cluster.back());
  if (!plan || &cluster.back() != op->getNextNode() || !yield ||
      !llvm::equal(op->getOperands(), cluster.getArguments()) ||
      !llvm::equal(yield.getValues(), ValueRange(op.getY())))
    return op.emitOpError("cannot be inside of a generated kernel");
  GeneratedKernel kernel;
  GeneratedStage &stage = kernel.stages.emplace_back();
  stage.extent = plan->items();
  stage.chunk = plan->chunk();
  stage.flops = 2 * plan->rows * plan->inner * plan->columns;
  for (Value operand : op->getOperands()) {
    stage.bytes += nn::physicalBytes(nn::tensorType(operand));
    stage.access.push_back(exec::Access::Read);
  }
  stage.bytes += nn::physicalBytes(nn::tensorType(op.getY()));
  stage.access.push_back(exec::Access::Write);
  llvm::append_range(stage.buffers, llvm::seq<unsigned>(0, stage.access.size()));
  return kernel;
}

FailureOr<GeneratedKernel> dlc::planGeneratedKernel(Block &cluster) {
  if (nn::MatmulOp product = productOf(cluster))
    return planProductKernel(cluster, product);
  GeneratedKernel kernel;
  FailureOr<ClusterPlan> plan = planCluster(cluster);
  if (failed(plan))
    return failure();
  kernel.scratch.assign(plan->scratch.begin(), plan->scratch.end());
  for (const StagePlan &stage : plan->stages) {
    GeneratedStage &planned = kernel.stages.emplace_back();
    planned.extent = stage.items;
    planned.chunk = stage.chunk;
    planned.buffers = stageBuffers(stage, &planned.access);
    uint64_t operations = 0;
    for (const ClusterNode &node : stage.nodes)
      operations += node.kind == ClusterNode::Kind::Op;
    for (const ClusterWrite &write : stage.writes)
      operations += write.reduction != nullptr;
    planned.flops = operations * static_cast<uint64_t>(stage.iterations());
    for (unsigned buffer : planned.buffers) {
      RankedTensorType type = plan->buffers[buffer];
      planned.bytes +=
          touchedElements(stage, buffer, type) * nn::elementBytes(type.getElementType());
    }
  }
  return kernel;
}

ClusterSharing::ClusterSharing(Block &cluster) : operands(cluster.getNumArguments()) {
  if (productOf(cluster)) // Every element of y is of all elements of a row.
    return;
  if (FailureOr<ClusterPlan> planned = planCluster(cluster); succeeded(planned))
    plan = std::make_unique<ClusterPlan>(std::move(*planned));
}

ClusterSharing::~ClusterSharing() = default;

bool ClusterSharing::canShare(unsigned operand, unsigned result) const {
  unsigned target = operands + result;
  if (!plan || plan->buffers[operand] != plan->buffers[target])
    return false;
  const ClusterWrite *written = nullptr;
  const StagePlan *writer = nullptr;
  for (const StagePlan &stage : plan->stages)
    for (const ClusterWrite &write : stage.writes)
      if (write.buffer == target) {
        if (written || write.reduction)
          return false;
        written = &write;
        writer = &stage;
      }
  for (const StagePlan &stage : plan->stages)
    for (const ClusterNode &node : stage.nodes) {
      if (node.kind != ClusterNode::Kind::Read || node.buffer != operand)
        continue;
      if (&stage != writer || node.form != written->address || !node.bounds.empty())
        return false;
    }
  return written != nullptr;
}

bool ClusterSharing::canShareInStage(uint64_t stage, unsigned read, unsigned written) const {
  if (!plan || stage >= plan->stages.size())
    return false;
  SmallVector<unsigned> buffers = stageBuffers(plan->stages[stage]);
  if (read >= buffers.size() || written >= buffers.size())
    return false;
  bool isOperand = buffers[read] < operands;
  return isOperand && buffers[written] >= operands &&
         canShare(buffers[read], buffers[written] - operands);
}
