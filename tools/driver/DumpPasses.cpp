#include "tools/driver/DumpPasses.h"

#include "mlir/Pass/Pass.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

void dlc::DumpPasses::dump(Pass *pass, Operation *op) {
  // Passes without a name only run others.
  if (pass->getArgument().empty())
    return;
  std::string path;
  llvm::raw_string_ostream(path) << directory << "/" << llvm::format("%02u", ++count) << "-"
                                 << pass->getArgument() << ".mlir";
  std::error_code error;
  llvm::raw_fd_ostream os(path, error, llvm::sys::fs::OF_Text);
  if (error) {
    llvm::errs() << "dlc: cannot write '" << path << "': " << error.message() << "\n";
    return;
  }
  while (Operation *parent = op->getParentOp())
    op = parent;
  op->print(os, OpPrintingFlags().enableDebugInfo());
  os << "\n";
}
