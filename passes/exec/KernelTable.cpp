// A kernel's key is its whole content: the plan's bytes and the operands' types, since a padded
// tensor may have the plan of a wider one; or the body of the cluster.

#include "passes/exec/KernelTable.h"

#include "dialects/NN/Role.h"
#include "passes/codegen/ContentKey.h"
#include "passes/codegen/GeneratedKernel.h"
#include "passes/planning/PlannedKernel.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;

StringRef dlc::categoryOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case<nn::ConvOp, nn::ConvTransposeOp>([](auto) { return "conv.forward"; })
      .Case<nn::ConvGradDataOp>([](auto) { return "conv.grad_data"; })
      .Case<nn::ConvGradFilterOp>([](auto) { return "conv.grad_filter"; })
      .Case<nn::MatmulOp>([](auto) { return "dense"; })
      .Case<nn::MaxPoolOp, nn::MaxPoolGradOp>([](auto) { return "pooling"; })
      .Case([](nn::ReorderOp reorder) {
        // A narrowing reorder is a pass over the tensor in any case.
        return nn::tensorType(reorder.getX()).getElementType() == reorder.getType().getElementType()
                   ? "reorder"
                   : "pointwise";
      })
      .Case<nn::FusedOp>([](nn::FusedOp fused) -> StringRef {
        nn::Role role = nn::roleOf(fused);
        if (role.phase == nn::Phase::Update)
          return "optimizer";
        if (!fused.getBody().getOps<nn::MaxPoolOp>().empty())
          return "pooling";
        if (!fused.getBody().getOps<nn::MatmulOp>().empty())
          return "dense";
        for (Operation &inner : fused.getBody().front())
          if (nn::isDepthwise(&inner))
            return categoryOf(&inner);
        return role.kind == nn::LayerKind::Other ? StringRef("pointwise")
                                                 : stringifyLayerKind(role.kind);
      })
      .Default([](Operation *) { return "other"; });
}

FlatSymbolRefAttr
KernelTable::insert(StringRef key, StringRef base,
                    llvm::function_ref<Operation *(OpBuilder &, StringRef)> create) {
  auto [entry, inserted] = known.try_emplace(key);
  if (inserted) {
    std::string name = (base + "_" + Twine(names[base]++)).str();
    OpBuilder builder = OpBuilder::atBlockEnd(&model.getBody().front());
    entry->second = FlatSymbolRefAttr::get(symbols.insert(create(builder, name)));
  }
  return entry->second;
}

//===- Library kernels ------------------------------------------------------------------------===//

static std::string symbolBase(Operation *op) { return op->getName().stripDialect().str(); }

FailureOr<KernelUse> KernelTable::library(Operation *op) {
  auto planned = op->getAttrOfType<nn::KernelAttr>(plannedKernelName);
  if (!planned)
    return op->emitOpError("has no kernel; run dlc-plan-kernels first");
  std::optional<rt::KernelRequest> request = kernels.request(op);
  rt::CandidateList list = kernels.candidates(op, *request);
  const rt::KernelCandidate *choice = nullptr;
  for (const rt::KernelCandidate &candidate : list.candidates)
    if (!choice && candidate.implementation == planned.getImplementation())
      choice = &candidate;
  if (!choice)
    return op->emitOpError("was planned as '")
           << planned.getImplementation() << "', which the target does not offer: "
           << (list.reason.empty() ? "other implementations only" : list.reason);
  std::string reason;
  std::vector<uint8_t> plan = kernels.planner().finalise(*request, *choice, reason);
  if (plan.empty())
    return op->emitOpError("cannot be planned: ") << reason;

  SmallVector<Type> types(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  SmallVector<int32_t> access(op->getNumOperands(), static_cast<int32_t>(exec::Access::Read));
  access.append(op->getNumResults(), static_cast<int32_t>(exec::Access::Write));
  KernelUse use;
  if (choice->workspaceBytes > 0) {
    use.scratch.push_back(
        RankedTensorType::get(static_cast<int64_t>(choice->workspaceBytes),
                              IntegerType::get(op->getContext(), 8, IntegerType::Unsigned)));
    types.push_back(use.scratch.back());
    access.push_back(static_cast<int32_t>(exec::Access::Write));
  }
  std::string key(plan.begin(), plan.end());
  llvm::raw_string_ostream text(key);
  for (Type type : types)
    text << ' ' << type;
  FlatSymbolRefAttr symbol =
      insert("plan:" + key, symbolBase(op), [&](OpBuilder &builder, StringRef name) {
        auto *bytes = reinterpret_cast<const int8_t *>(plan.data());
        return exec::KernelOp::create(
            builder, op->getLoc(), builder.getStringAttr(name), builder.getTypeArrayAttr(types),
            builder.getDenseI32ArrayAttr(access), builder.getStringAttr(categoryOf(op)),
            builder.getStringAttr(choice->implementation),
            builder.getDenseI8ArrayAttr({bytes, plan.size()}), FlatSymbolRefAttr(),
            /*stage=*/0, StringAttr(), /*extent=*/1, /*chunk=*/1, /*part=*/0, planned.getFlops(),
            planned.getBytes(), planned.getNanoseconds());
      });
  use.stages.push_back({symbol, llvm::to_vector(llvm::seq<unsigned>(0, types.size()))});
  return use;
}

//===- Generated kernels ----------------------------------------------------------------------===//

/// The kernel of one stage of a planned cluster.
static exec::KernelOp createStage(OpBuilder &builder, Location location, StringRef name,
                                  StringRef category, exec::ClusterOp cluster,
                                  const GeneratedKernel &plan, unsigned index,
                                  uint64_t nanoseconds) {
  const GeneratedStage &stage = plan.stages[index];
  return exec::KernelOp::create(
      builder, location, builder.getStringAttr(name),
      builder.getTypeArrayAttr(plan.typesOf(stage, cluster.getBody().front())),
      builder.getDenseI32ArrayAttr(stage.accessNumbers()), builder.getStringAttr(category),
      builder.getStringAttr(generatedName), DenseI8ArrayAttr(),
      FlatSymbolRefAttr::get(cluster.getSymNameAttr()), index,
      builder.getStringAttr(cluster.getSymName() + "_" + Twine(index)), stage.extent, stage.chunk,
      stage.part, stage.flops, stage.bytes, nanoseconds);
}

/// Attributes are unique, so their addresses tell them apart.
static std::string keyOfPlan(nn::FusedOp op) {
  std::string key;
  for (StringRef name : {planName, tilesName, sumsName}) {
    const void *attribute = op->getAttr(name).getAsOpaquePointer();
    key.append(reinterpret_cast<const char *>(&attribute), sizeof(attribute));
  }
  return key;
}

FailureOr<KernelUse> KernelTable::generated(nn::FusedOp op) {
  std::optional<GeneratedKernel> plan = GeneratedKernel::of(op);
  if (!plan)
    return op.emitOpError("has no plan; run dlc-plan-kernels first");
  std::string content = ContentKey(op.getBody()).bytes + keyOfPlan(op);
  FlatSymbolRefAttr cluster =
      insert("cluster:" + content, "cluster", [&](OpBuilder &builder, StringRef name) {
        auto clusterOp = exec::ClusterOp::create(builder, op->getLoc(), builder.getStringAttr(name),
                                                 DenseI64ArrayAttr());
        IRMapping mapping;
        op.getBody().cloneInto(&clusterOp.getBody(), mapping);
        plan->writeTo(clusterOp);
        return clusterOp;
      });
  StringRef category = categoryOf(op);
  auto planned = op->getAttrOfType<nn::KernelAttr>(plannedKernelName);
  uint64_t total = 1; // the forecast of a cluster is shared out among its stages by bytes
  for (const GeneratedStage &stage : plan->stages)
    total += stage.bytes;
  KernelUse use;
  use.scratch = plan->scratch;
  for (auto [index, stage] : llvm::enumerate(plan->stages)) {
    uint64_t nanoseconds = planned ? planned.getNanoseconds() * stage.bytes / total : 0;
    std::string key = ("stage:" + Twine(index) + ":" + category + ":" + content).str();
    FlatSymbolRefAttr symbol = insert(key, category, [&](OpBuilder &builder, StringRef name) {
      return createStage(builder, op->getLoc(), name, category,
                         symbols.lookup<exec::ClusterOp>(cluster.getValue()), *plan, index,
                         nanoseconds);
    });
    use.stages.push_back({symbol, stage.buffers});
  }
  return use;
}

SmallVector<exec::KernelOp> dlc::createKernels(exec::ClusterOp cluster, StringRef name,
                                               StringRef category, SymbolTable &symbols,
                                               const rt::KernelPlanner &planner) {
  FailureOr<GeneratedKernel> plan =
      planGeneratedKernel(cluster.getBody().front(), planner.target().loops);
  if (failed(plan))
    return {};
  plan->writeTo(cluster);
  OpBuilder builder(cluster->getContext());
  builder.setInsertionPointAfter(cluster);
  SmallVector<exec::KernelOp> kernels;
  for (auto [index, stage] : llvm::enumerate(plan->stages)) {
    auto cost = static_cast<uint64_t>(planner.generatedCost(stage.bytes, stage.flops));
    std::string own = index == 0 ? name.str() : (name + "_stage_" + Twine(index)).str();
    kernels.push_back(createStage(builder, cluster.getLoc(), own, category, cluster, *plan,
                                  static_cast<unsigned>(index), cost));
    symbols.insert(kernels.back());
  }
  return kernels;
}

exec::KernelOp dlc::createKernel(exec::ClusterOp cluster, StringRef name, StringRef category,
                                 SymbolTable &symbols, const rt::KernelPlanner &planner) {
  SmallVector<exec::KernelOp> kernels = createKernels(cluster, name, category, symbols, planner);
  assert(kernels.size() < 2 && "elementwise");
  return kernels.empty() ? exec::KernelOp() : kernels.front();
}
