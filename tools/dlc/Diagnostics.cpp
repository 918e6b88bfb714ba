#include "tools/dlc/Diagnostics.h"

#include "dialects/Comm/Comm.h"
#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace dlc;

/// The first place in a file that a location names.
static FileLineColLoc fileLocation(Location location) {
  FileLineColLoc found;
  location->walk([&](Location part) {
    found = dyn_cast<FileLineColLoc>(part);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

static void print(Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
    return;
  if (FileLineColLoc place = fileLocation(diagnostic.getLocation()))
    llvm::errs() << place.getFilename().getValue() << ":" << place.getLine() << ":"
                 << place.getColumn() << ": ";
  bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
  llvm::errs() << (isError ? "error: " : "warning: ");
  if (llvm::StringRef layer = nn::layerName(diagnostic.getLocation()); !layer.empty())
    llvm::errs() << layer << ": ";
  llvm::errs() << diagnostic.str() << "\n";
}

OneLineDiagnostics::OneLineDiagnostics(MLIRContext &context)
    : handler(&context, [](Diagnostic &diagnostic) {
        print(diagnostic);
        return success();
      }) {
  context.printOpOnDiagnostic(false);
}

DialectRegistry dlc::registryOfDialects() {
  DialectRegistry registry;
  registry.insert<nn::NNDialect, comm::CommDialect, exec::ExecDialect>();
  return registry;
}
