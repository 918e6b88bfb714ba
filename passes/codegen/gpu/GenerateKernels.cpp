#include "passes/codegen/gpu/GenerateKernels.h"

#include "dialects/Exec/Exec.h"
#include "passes/codegen/ClusterPlan.h"
#include "passes/codegen/Contracts.h"
#include "passes/codegen/gpu/Assemble.h"
#include "passes/codegen/gpu/EmitPtx.h"
#include "passes/codegen/gpu/EmitStage.h"
#include "passes/codegen/gpu/LowerKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

using namespace mlir;
using namespace dlc;

static void registerKernelDialects(MLIRContext *context) {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect,
                  math::MathDialect, NVVM::NVVMDialect, scf::SCFDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
}

FailureOr<std::string> dlc::emitGpuClusters(nn::ModelOp model, llvm::StringMap<Launch> &launches,
                                            llvm::raw_ostream *llvmText) {
  registerKernelDialects(model.getContext());
  OwningOpRef<ModuleOp> module(ModuleOp::create(model.getLoc()));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  for (auto cluster : model.getOps<exec::ClusterOp>()) {
    FailureOr<ClusterPlan> plan = restoreCluster(cluster);
    if (failed(plan))
      return failure();
    for (auto [index, stage] : llvm::enumerate(plan->stages)) {
      std::string name = (cluster.getSymName() + "_" + Twine(index)).str();
      launches[name] = emitGpuStage(builder, cluster.getLoc(), name, stage);
    }
  }
  if (module->getBody()->empty())
    return std::string();
  if (failed(lowerGpuKernels(*module)))
    return failure();
  return emitPtx(*module, llvmText);
}

LogicalResult dlc::emitGpuKernels(nn::ModelOp model, const rt::PlannerTarget &target,
                                  EmittedCode &code, const CodeText &text) {
  if (text.linalg)
    return model.emitError("kernels of GPUs are emitted as PTX, not from linalg: --emit=ptx shows "
                           "them");
  signClusters(model); // kernels are found by their names, and nothing else says what they are for
  FailureOr<std::string> ptx = emitGpuClusters(model, code.launches, text.llvm);
  if (failed(ptx))
    return failure();
  if (text.ptx)
    *text.ptx << *ptx;
  if (ptx->empty() || text.llvm || text.ptx)
    return success();
  std::optional<std::string> assembler = findAssembler();
  StringRef architecture = target.features.front();
  if (assembler) {
    Assembled assembled = assemble(*assembler, *ptx, architecture, code.launches);
    if (assembled.binary.empty())
      return model.emitError(assembled.reason);
    for (auto kernel : model.getOps<exec::KernelOp>())
      if (llvm::is_contained(assembled.spilling, kernel.getFunction()))
        kernel.emitWarning("kernel ")
            << kernel.getSymName()
            << " computes more at a time than registers hold and keeps the rest in memory, which "
               "costs time";
    code.modules.push_back({architecture.str(), std::move(assembled.binary)});
  } else {
    model.emitWarning("ptxas was not found, neither in CUDA_HOME nor on the PATH: the artifact "
                      "holds PTX alone, which the driver assembles at each start");
  }
  code.modules.push_back({"compute_80", std::move(*ptx)});
  return success();
}
