// LLVM's part: translation, the middle-end without its own vectorisers (kernels are in vectors
// already), and code generation for the target. Functions are compiled in a fixed number of shares,
// each in an LLVM context of its own, side by side. The output depends on module and target alone.

#include "passes/codegen/cpu/EmitObject.h"
#include "passes/codegen/MiddleEnd.h"

#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace dlc;

static std::unique_ptr<llvm::TargetMachine> createMachine(const CodeTarget &target,
                                                          std::string &reason) {
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, reason);
  if (!backend)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, target.cpu, target.features, llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Default));
}

//===- Shares ---------------------------------------------------------------------------------===//

// More shares than most machines have cores would only add set-up of LLVM. The number is fixed,
// since the shares, and so the output, must not depend on the machine.
static constexpr int64_t mostShares = 8;

static int64_t countOperations(Operation &op) {
  int64_t operations = 0;
  op.walk([&](func::FuncOp function) { function.walk([&](Operation *) { ++operations; }); });
  return operations;
}

void dlc::splitIntoShares(ModuleOp module) {
  std::vector<ModuleOp> shares(mostShares);
  for (ModuleOp &share : shares)
    share = ModuleOp::create(module.getLoc());
  int64_t all = countOperations(*module), before = 0;
  // A function's tables stand before it.
  for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
    Block *share = shares[std::min(before * mostShares / all, mostShares - 1)].getBody();
    op.moveBefore(share, share->end());
    before += countOperations(op);
  }
  for (ModuleOp share : shares) {
    module.push_back(share);
    if (share.getBody()->empty())
      share.erase();
  }
}

namespace {
/// An object, and the text of its code if asked for.
class Share {
public:
  /// May run beside other shares.
  LogicalResult compile(ModuleOp module, const CodeTarget &target, bool print);

  llvm::SmallVector<char, 0> object;
  std::string text;
};
} // namespace

static void setTarget(llvm::Module &module, const CodeTarget &target,
                      const llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  std::string width = std::to_string(target.vectorBytes * 8);
  for (llvm::Function &function : module) {
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.features);
    // Or LLVM splits 512-bit vectors where it deems them slow.
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
  }
}

LogicalResult Share::compile(ModuleOp module, const CodeTarget &target, bool print) {
  std::string reason;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, reason);
  if (!machine)
    return module.emitError("LLVM has no back end for this machine: ") << reason;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context, "kernels");
  if (!code)
    return failure();
  setTarget(*code, target, *machine);
  optimize(*code, *machine);
  if (print) {
    llvm::raw_string_ostream stream(text);
    code->print(stream, nullptr);
  }
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return module.emitError("LLVM cannot write object files for this machine");
  emission.run(*code);
  return success();
}

FailureOr<Objects> dlc::emitObjects(ModuleOp shares, const CodeTarget &target,
                                    llvm::raw_ostream *text) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto modules = llvm::to_vector(shares.getOps<ModuleOp>());
  std::vector<Share> compiled(modules.size());
  if (failed(failableParallelForEachN(shares.getContext(), 0, modules.size(), [&](size_t i) {
        return compiled[i].compile(modules[i], target, text != nullptr);
      })))
    return failure();
  Objects objects;
  for (Share &share : compiled) {
    if (text)
      *text << share.text;
    objects.push_back(std::move(share.object));
  }
  return objects;
}
