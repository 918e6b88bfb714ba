// LLVM's part: translation, the middle-end without its own vectorisers (vectors are ours), and code
// generation for the target. The output depends on module and target alone.

#include "passes/KernelEmitter.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace dlc;

static std::unique_ptr<llvm::TargetMachine> createMachine(const CodeTarget &target,
                                                          std::string &reason) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, reason);
  if (!backend)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, target.cpu, target.features, llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Default));
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

LogicalResult dlc::emitObject(ModuleOp module, const CodeTarget &target,
                              SmallVectorImpl<char> &object, llvm::raw_ostream *text) {
  std::string reason;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, reason);
  if (!machine)
    return module.emitError("LLVM has no back end for this machine: ") << reason;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(module, context, "kernels");
  if (!llvmModule)
    return failure();
  llvmModule->setTargetTriple(machine->getTargetTriple());
  llvmModule->setDataLayout(machine->createDataLayout());
  std::string width = std::to_string(target.vectorBytes * 8);
  for (llvm::Function &function : *llvmModule) {
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.features);
    // Or LLVM splits 512-bit vectors where it deems them slow.
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
  }
  optimize(*llvmModule, *machine);
  if (text)
    llvmModule->print(*text, nullptr);
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return module.emitError("LLVM cannot write object files for this machine");
  emission.run(*llvmModule);
  return success();
}
