#include "tools/driver/Diagnostics.h"

#include "dialects/NN/NN.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

#include <utility>

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

static void print(Diagnostic &diagnostic, llvm::raw_ostream &stream) {
  if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
    return;
  if (FileLineColLoc place = fileLocation(diagnostic.getLocation()))
    stream << place.getFilename().getValue() << ":" << place.getLine() << ":" << place.getColumn()
           << ": ";
  bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
  stream << (isError ? "error: " : "warning: ");
  if (llvm::StringRef layer = nn::layerName(diagnostic.getLocation()); !layer.empty())
    stream << layer << ": ";
  stream << diagnostic.str() << "\n";
}

OneLineDiagnostics::OneLineDiagnostics(MLIRContext &context, llvm::raw_ostream &stream)
    : handler(&context, [&stream, failed = false](Diagnostic &diagnostic) mutable {
        bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
        if (!isError || !std::exchange(failed, true))
          print(diagnostic, stream);
        return success();
      }) {
  context.printOpOnDiagnostic(false);
}
