// MLIR's diagnostics as users of dlc see them: FILE:LINE:COLUMN: error: message, one line.
#pragma once

#include "mlir/IR/Diagnostics.h"

namespace dlc {

/// Prints warnings and the first error of a context while it lives: what MLIR says after the first
/// one follows from it, or waits until that is mended.
class OneLineDiagnostics {
public:
  OneLineDiagnostics(mlir::MLIRContext &context, llvm::raw_ostream &stream);

private:
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace dlc
