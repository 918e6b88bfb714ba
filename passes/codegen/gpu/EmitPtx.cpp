#include "passes/codegen/gpu/EmitPtx.h"

#include "passes/codegen/MiddleEnd.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace dlc;

// What all devices since Ampere run, and a version of PTX that every CUDA 12 knows.
static constexpr llvm::StringLiteral architecture = "sm_80", version = "+ptx80";

static std::unique_ptr<llvm::TargetMachine> createMachine(std::string &reason) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, reason);
  if (!backend)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(triple, architecture, version, llvm::TargetOptions(),
                                   std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Default));
}

FailureOr<std::string> dlc::emitPtx(ModuleOp module, llvm::raw_ostream *llvmText) {
  std::string reason;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(reason);
  if (!machine)
    return module.emitError("LLVM has no back end for NVIDIA's GPUs: ") << reason;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context, "kernels");
  if (!code)
    return failure();
  code->setTargetTriple(machine->getTargetTriple());
  code->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : *code)
    function.addFnAttr("denormal-fp-math-f32", "preserve-sign,preserve-sign");
  optimize(*code, *machine);
  if (llvmText)
    code->print(*llvmText, nullptr);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return module.emitError("LLVM cannot write PTX");
  emission.run(*code);
  return text.str().str();
}
