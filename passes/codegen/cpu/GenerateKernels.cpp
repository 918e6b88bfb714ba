// Emits the clusters of an exec model: each stage becomes linalg, then loops over vectors, unless
// it is a loop over operands; those that differ in sizes only become one; then shares of them, side
// by side, LLVM IR and objects; all together a shared object.

#include "passes/codegen/cpu/GenerateKernels.h"

#include "dialects/Exec/Exec.h"
#include "passes/codegen/Contracts.h"
#include "passes/codegen/EmitRandom.h"
#include "passes/codegen/GeneratedKernel.h"
#include "passes/codegen/ProductPlan.h"
#include "passes/codegen/SideBySide.h"
#include "passes/codegen/cpu/EmitOperandLoops.h"
#include "passes/codegen/cpu/LinkModule.h"
#include "passes/codegen/cpu/LowerKernels.h"
#include "passes/codegen/cpu/ProductEmitter.h"
#include "passes/codegen/cpu/vectorize/EmitLinalg.h"
#include "passes/codegen/cpu/vectorize/VectorizeStage.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

using namespace mlir;
using namespace dlc;

/// What emission needs in the context.
static void registerKernelDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect, cf::ControlFlowDialect,
                  func::FuncDialect, linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

/// Marks the writes of a cluster that are non-temporal.
static void markNonTemporal(ClusterPlan &plan, exec::ClusterOp cluster) {
  ArrayRef<int64_t> results = cluster.getNontemporal().value_or(ArrayRef<int64_t>());
  int64_t operands = cluster.getBody().getNumArguments();
  for (StagePlan &stage : plan.stages)
    for (ClusterWrite &write : stage.writes)
      write.nonTemporal = !write.reduction && llvm::is_contained(results, write.buffer - operands);
}

/// What each kernel may be called for.
static Contracts contractsOf(nn::ModelOp model) {
  Contracts contracts;
  for (auto kernel : model.getOps<exec::KernelOp>()) {
    std::optional<StringRef> function = kernel.getFunction();
    if (function && !contracts.contains(*function))
      contracts[*function] = static_cast<int64_t>(contractOf(kernel).value());
  }
  return contracts;
}

LogicalResult dlc::emitClusters(nn::ModelOp model, const CodeTarget &target,
                                std::string &sharedObject, const CodeText &text) {
  MLIRContext *context = model.getContext();
  DialectRegistry registry;
  registerKernelDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  // Earlier passes have one model to work on, and are faster without threads and their locks.
  context->enableMultithreading();
  OwningOpRef<ModuleOp> module(ModuleOp::create(model.getLoc()));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  const unsigned lanes = target.vectorBytes / sizeof(float);
  std::vector<std::pair<LinalgStage, StagePlan>> stages;
  std::vector<KernelEntry> entries;
  for (auto cluster : model.getOps<exec::ClusterOp>()) {
    if (productOf(cluster.getBody().front())) {
      FailureOr<ProductPlan> plan = restoreProduct(cluster);
      if (failed(plan))
        return failure();
      if (plan->itemColumns % productUnit(*plan, target) != 0)
        return cluster.emitOpError("is planned with items of ")
               << plan->itemColumns << " columns, expected a multiple of "
               << productUnit(*plan, target);
      emitProduct(builder, cluster.getLoc(), (cluster.getSymName() + "_0").str(), *plan, target);
      continue;
    }
    FailureOr<ClusterPlan> plan = restoreCluster(cluster);
    if (failed(plan))
      return failure();
    auto isUnknown = [](const StagePlan &stage) {
      return stage.epilogue || llvm::any_of(stage.writes, [](auto &w) { return !w.isStored; });
    };
    if (llvm::any_of(plan->stages, isUnknown))
      return refusePlan(cluster);
    markNonTemporal(*plan, cluster);
    for (auto [index, stage] : llvm::enumerate(plan->stages)) {
      std::string name = (cluster.getSymName() + "_" + Twine(index)).str();
      if (auto entry = emitOperandLoop(builder, cluster.getLoc(), name, stage, lanes)) {
        entries.push_back(std::move(*entry));
        continue;
      }
      stages.emplace_back(buildLinalgStage(builder, cluster.getLoc(), name, *plan, stage), stage);
    }
  }
  sharedObject.clear();
  if (module->getBody()->empty())
    return success();
  if (failed(verify(*module)))
    return failure();
  if (text.linalg)
    module->print(*text.linalg);
  auto functions = llvm::map_to_vector(
      stages, [](const auto &stage) { return func::FuncOp(stage.first.function); });
  changeSideBySide(functions, [&](size_t i) {
    vectorizeStage(stages[i].first, stages[i].second, lanes);
    return stages[i].first.function;
  });
  if (Operation *replaced = module->lookupSymbol(randomBitsName))
    replaced->erase();
  llvm::append_range(entries, mergeKernels(*module));
  splitIntoShares(*module);
  if (failed(lowerToLlvm(*module, entries, contractsOf(model), target)))
    return failure();
  FailureOr<Objects> objects = emitObjects(*module, target, text.llvm);
  if (failed(objects))
    return failure();
  std::string reason;
  if (failed(linkSharedObject(*objects, sharedObject, reason)))
    return model.emitError(reason);
  return success();
}

LogicalResult dlc::emitCpuKernels(nn::ModelOp model, const rt::PlannerTarget &target,
                                  EmittedCode &code, const CodeText &text) {
  if (text.ptx)
    return model.emitError("kernels of CPUs are emitted from linalg, not as PTX: --emit=linalg and "
                           "--emit=llvm show them");
  std::string sharedObject;
  if (failed(emitClusters(model, CodeTarget::of(target), sharedObject, text)))
    return failure();
  if (!sharedObject.empty())
    code.modules.push_back({"", std::move(sharedObject)});
  return success();
}
