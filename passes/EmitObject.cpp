// LLVM's part: translation, the middle-end without its own vectorisers (vectors are ours), and code
// generation for the target. Functions know nothing of each other, so they are compiled in a fixed
// number of shares, each in an LLVM context of its own, side by side. The output depends on module
// and target alone.

#include "passes/KernelEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ThreadPool.h"
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

// Of equal work; more than most machines have cores to spare would only be more of LLVM's set-up.
static constexpr int64_t mostShares = 4;

namespace {
/// Functions that are compiled together.
class Share {
public:
  /// Takes the part of the module that `functions` are.
  Share(ModuleOp module, const llvm::StringSet<> &functions);
  LogicalResult translate(const CodeTarget &target);
  /// May run beside other shares.
  LogicalResult compile(bool print);

  llvm::SmallVector<char, 0> object;
  std::string text;

private:
  OwningOpRef<ModuleOp> module;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> llvmModule;
};
} // namespace

Share::Share(ModuleOp whole, const llvm::StringSet<> &functions)
    : module(ModuleOp::create(whole.getLoc())) {
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  for (Operation &op : *whole.getBody()) {
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (!function || function.isExternal() || functions.contains(function.getName()))
      builder.clone(op);
  }
}

LogicalResult Share::translate(const CodeTarget &target) {
  std::string reason;
  machine = createMachine(target, reason);
  if (!machine)
    return module->emitError("LLVM has no back end for this machine: ") << reason;
  llvmModule = translateModuleToLLVMIR(*module, context, "kernels");
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
  return success();
}

LogicalResult Share::compile(bool print) {
  optimize(*llvmModule, *machine);
  if (print) {
    llvm::raw_string_ostream stream(text);
    llvmModule->print(stream, nullptr);
  }
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return failure();
  emission.run(*llvmModule);
  return success();
}

/// Runs of functions, in the module's order, of about the same number of operations. A body is
/// followed by its entries.
static std::vector<llvm::StringSet<>> shareFunctions(ModuleOp module) {
  int64_t all = 0, before = 0, share = 0;
  module.walk([&](Operation *) { ++all; });
  std::vector<llvm::StringSet<>> shares(mostShares);
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (function.isExternal())
      continue;
    if (function.getLinkage() == LLVM::Linkage::Internal)
      share = before * mostShares / all;
    shares[share].insert(function.getName());
    function.walk([&](Operation *) { ++before; });
  }
  llvm::erase_if(shares, [](const llvm::StringSet<> &share) { return share.empty(); });
  return shares;
}

FailureOr<Objects> dlc::emitObjects(ModuleOp module, const CodeTarget &target,
                                    llvm::raw_ostream *text) {
  std::vector<std::unique_ptr<Share>> shares;
  for (const llvm::StringSet<> &functions : shareFunctions(module)) {
    shares.push_back(std::make_unique<Share>(module, functions));
    if (failed(shares.back()->translate(target)))
      return failure();
  }
  // Threads of its own: nothing here touches MLIR's context, which may have none.
  std::vector<LogicalResult> compiled(shares.size(), failure());
  llvm::DefaultThreadPool threads(llvm::hardware_concurrency(shares.size()));
  for (size_t i = 0; i < shares.size(); ++i)
    threads.async([&, i] { compiled[i] = shares[i]->compile(text != nullptr); });
  threads.wait();
  if (llvm::any_of(compiled, failed))
    return module.emitError("LLVM cannot write object files for this machine");
  Objects objects;
  for (auto &share : shares) {
    if (text)
      *text << share->text;
    objects.push_back(std::move(share->object));
  }
  return objects;
}
