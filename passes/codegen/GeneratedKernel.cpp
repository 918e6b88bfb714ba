#include "passes/codegen/GeneratedKernel.h"

#include "passes/codegen/ClusterPlan.h"
#include "passes/codegen/ProductPlan.h"

using namespace mlir;
using namespace dlc;

static int64_t writesOf(const StagePlan &stage, unsigned buffer) {
  return llvm::count_if(stage.writes,
                        [&](auto &write) { return write.isStored && write.buffer == buffer; });
}

/// Elements of a buffer that a stage touches at most.
static int64_t touchedElements(const StagePlan &stage, unsigned buffer, RankedTensorType type) {
  int64_t times = writesOf(stage, buffer);
  for (const ClusterNode &node : stage.nodes)
    times += node.kind == ClusterNode::Kind::Read && node.buffer == buffer;
  return std::min(times * stage.iterations(),
                  nn::layoutOf(type).physicalElements(type.getShape().vec()));
}

/// Elements that a stage writes of a buffer which others write, too; 0 if there is none.
static uint64_t writtenPart(const ClusterPlan &plan, const StagePlan &stage) {
  for (const ClusterWrite &write : stage.writes)
    if (write.isStored &&
        llvm::count_if(plan.stages, [&](auto &s) { return writesOf(s, write.buffer) > 0; }) > 1)
      return writesOf(stage, write.buffer) * stage.iterations();
  return 0;
}

SmallVector<unsigned> dlc::stageBuffers(const StagePlan &stage, SmallVector<exec::Access> *access) {
  llvm::SetVector<unsigned> reads, writes;
  for (const ClusterNode &node : stage.nodes)
    if (node.kind == ClusterNode::Kind::Read)
      reads.insert(node.buffer);
  for (const ClusterWrite &write : stage.writes)
    if (write.isStored)
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
static FailureOr<GeneratedKernel> describeProduct(const std::optional<ProductPlan> &plan,
                                                  Block &cluster) {
  auto op = cast<nn::MatmulOp>(cluster.front());
  auto yield = dyn_cast<nn::YieldOp>(cluster.back());
  if (!plan || &cluster.back() != op->getNextNode() || !yield ||
      !llvm::equal(op->getOperands(), cluster.getArguments()) ||
      !llvm::equal(yield.getValues(), ValueRange(op.getY())))
    return op.emitOpError("cannot be inside of a generated kernel");
  GeneratedKernel kernel;
  GeneratedStage &stage = kernel.stages.emplace_back();
  stage.extent = plan->items();
  stage.chunk = plan->chunk;
  stage.tile = {plan->itemColumns};
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

FailureOr<ProductPlan> dlc::restoreProduct(Operation *cluster) {
  if (failed(verifyPlan(cluster)))
    return failure();
  GeneratedKernel stored = *GeneratedKernel::of(cluster);
  if (stored.stages.size() != 1 || stored.stages[0].tile.size() != 1 ||
      stored.stages[0].tile[0] < 1)
    return refusePlan(cluster);
  Block &body = cluster->getRegion(0).front();
  std::optional<ProductPlan> plan =
      productWith(productOf(body), stored.stages[0].tile[0], stored.stages[0].chunk);
  FailureOr<GeneratedKernel> kernel = describeProduct(plan, body);
  if (failed(kernel))
    return failure();
  if (*kernel != stored)
    return refusePlan(cluster);
  return *plan;
}

/// True if each element of the operand is read before the result is written over it.
static bool isInPlace(const ClusterPlan &plan, unsigned operand, unsigned target) {
  if (plan.buffers[operand] != plan.buffers[target])
    return false;
  const ClusterWrite *written = nullptr;
  const StagePlan *writer = nullptr;
  for (const StagePlan &stage : plan.stages)
    for (const ClusterWrite &write : stage.writes)
      if (write.isStored && write.buffer == target) {
        if (written || write.reduction)
          return false;
        written = &write;
        writer = &stage;
      }
  for (const StagePlan &stage : plan.stages)
    for (const ClusterNode &node : stage.nodes) {
      if (node.kind != ClusterNode::Kind::Read || node.buffer != operand)
        continue;
      if (&stage != writer || !isPlainRead(node) || node.form != written->address)
        return false;
    }
  return written != nullptr;
}

GeneratedKernel dlc::describe(const ClusterPlan &plan, Block &cluster) {
  GeneratedKernel kernel;
  kernel.scratch.assign(plan.scratch.begin(), plan.scratch.end());
  kernel.sums = plan.sums;
  for (const StagePlan &stage : plan.stages) {
    GeneratedStage &planned = kernel.stages.emplace_back();
    planned.extent = stage.items;
    planned.chunk = stage.chunk;
    planned.tile = stage.tile;
    planned.buffers = stageBuffers(stage, &planned.access);
    planned.part = writtenPart(plan, stage);
    for (auto [number, node] : llvm::enumerate(stage.nodes)) {
      int64_t times = stage.isEpilogue(number) ? stage.keptIterations() : stage.iterations();
      if (node.kind == ClusterNode::Kind::Op)
        planned.flops += times;
      if (node.kind == ClusterNode::Kind::Products)
        planned.flops += times * (node.operands.size() - 1);
    }
    for (const ClusterWrite &write : stage.writes)
      planned.flops += write.reduction ? stage.iterations() : 0;
    for (unsigned buffer : planned.buffers) {
      RankedTensorType type = plan.buffers[buffer];
      planned.bytes +=
          touchedElements(stage, buffer, type) * nn::elementBytes(type.getElementType());
    }
  }
  unsigned operands = cluster.getNumArguments(), results = cluster.back().getNumOperands();
  for (unsigned operand = 0; operand < operands; ++operand)
    for (unsigned result = 0; result < results; ++result)
      if (isInPlace(plan, operand, operands + result))
        kernel.shares.emplace_back(operand, result);
  return kernel;
}

FailureOr<GeneratedKernel> dlc::planGeneratedKernel(Block &cluster, const rt::LoopLimits &limits) {
  if (nn::MatmulOp product = productOf(cluster))
    return describeProduct(planProduct(product, limits.products), cluster);
  FailureOr<ClusterPlan> plan = planCluster(cluster, limits);
  if (failed(plan))
    return failure();
  return describe(*plan, cluster);
}

//===- Attribute ------------------------------------------------------------------------------===//

void GeneratedKernel::writeTo(Operation *cluster) const {
  Builder builder(cluster->getContext());
  SmallVector<Attribute> list, tiles;
  for (const GeneratedStage &stage : stages) {
    tiles.push_back(builder.getDenseI64ArrayAttr(stage.tile));
    SmallVector<int64_t> positions(stage.buffers.begin(), stage.buffers.end());
    list.push_back(nn::StagePlanAttr::get(
        builder.getContext(), stage.extent, stage.chunk, builder.getDenseI64ArrayAttr(positions),
        llvm::count(stage.access, exec::Access::Read), stage.bytes, stage.flops, stage.part));
  }
  SmallVector<int64_t> pairs;
  for (auto [operand, result] : shares)
    pairs.append({operand, result});
  SmallVector<Type> types(scratch.begin(), scratch.end());
  cluster->setAttr(planName,
                   nn::ClusterPlanAttr::get(builder.getContext(), builder.getArrayAttr(list),
                                            builder.getTypeArrayAttr(types),
                                            builder.getDenseI64ArrayAttr(pairs)));
  cluster->setAttr(tilesName, builder.getArrayAttr(tiles));
  if (sums)
    cluster->setAttr(sumsName, TypeAttr::get(sums));
}

SmallVector<int32_t> GeneratedStage::accessNumbers() const {
  return llvm::map_to_vector(access, [](exec::Access a) { return static_cast<int32_t>(a); });
}

SmallVector<Type> GeneratedKernel::typesOf(const GeneratedStage &stage, Block &body) const {
  SmallVector<Type> all(body.getArgumentTypes());
  llvm::append_range(all, body.back().getOperandTypes());
  llvm::append_range(all, scratch);
  return llvm::map_to_vector(stage.buffers, [&](unsigned buffer) { return all[buffer]; });
}

std::optional<GeneratedKernel> GeneratedKernel::of(Operation *cluster) {
  auto plan = cluster->getAttrOfType<nn::ClusterPlanAttr>(planName);
  if (!plan)
    return std::nullopt;
  GeneratedKernel kernel;
  for (auto planned : plan.getStages().getAsRange<nn::StagePlanAttr>()) {
    GeneratedStage &stage = kernel.stages.emplace_back();
    ArrayRef<int64_t> buffers = planned.getBuffers().asArrayRef();
    stage.extent = planned.getExtent();
    stage.chunk = planned.getChunk();
    stage.buffers.assign(buffers.begin(), buffers.end());
    stage.access.assign(planned.getReads(), exec::Access::Read);
    stage.access.resize(buffers.size(), exec::Access::Write);
    stage.bytes = planned.getBytes();
    stage.flops = planned.getFlops();
    stage.part = planned.getPart();
  }
  if (auto tiles = cluster->getAttrOfType<ArrayAttr>(tilesName))
    for (auto [stage, tile] : llvm::zip(kernel.stages, tiles.getAsRange<DenseI64ArrayAttr>()))
      stage.tile.assign(tile.asArrayRef().begin(), tile.asArrayRef().end());
  if (auto sums = cluster->getAttrOfType<TypeAttr>(sumsName))
    kernel.sums = sums.getValue();
  for (Type type : plan.getScratch().getAsValueRange<TypeAttr>())
    kernel.scratch.push_back(cast<RankedTensorType>(type));
  ArrayRef<int64_t> pairs = plan.getShares().asArrayRef();
  for (size_t i = 0; i < pairs.size(); i += 2)
    kernel.shares.emplace_back(pairs[i], pairs[i + 1]);
  return kernel;
}

bool dlc::canShare(Operation *cluster, unsigned operand, unsigned result) {
  auto plan = cluster->getAttrOfType<nn::ClusterPlanAttr>(planName);
  ArrayRef<int64_t> pairs = plan ? plan.getShares().asArrayRef() : ArrayRef<int64_t>();
  for (size_t i = 0; i < pairs.size(); i += 2)
    if (pairs[i] == operand && pairs[i + 1] == result)
      return true;
  return false;
}

LogicalResult dlc::refusePlan(Operation *cluster) {
  return cluster->emitOpError("carries a plan that its body cannot have; compile from text of a "
                              "stage before schedule");
}

LogicalResult dlc::verifyPlan(Operation *cluster) {
  std::optional<GeneratedKernel> plan = GeneratedKernel::of(cluster);
  if (!plan)
    return cluster->emitOpError("has no plan; run dlc-plan-kernels");
  Block &body = cluster->getRegion(0).front();
  if (body.empty() || !isa<nn::YieldOp>(body.back()))
    return cluster->emitOpError("needs nn.yield as its last op");
  unsigned operands = body.getNumArguments(), results = body.back().getNumOperands();
  for (const GeneratedStage &stage : plan->stages)
    for (unsigned buffer : stage.buffers)
      if (buffer >= operands + results + plan->scratch.size())
        return cluster->emitOpError("is planned with buffer ")
               << buffer << " of " << operands + results + plan->scratch.size();
  for (auto [operand, result] : plan->shares)
    if (operand >= operands || result >= results ||
        body.getArgument(operand).getType() != body.back().getOperand(result).getType())
      return cluster->emitOpError("is planned to write result ")
             << result << " in the memory of operand " << operand << ", which is another tensor";
  return success();
}
