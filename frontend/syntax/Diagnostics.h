// Where the frontend's errors go: file:line:column, the source line and a caret, and for errors
// inside functions the calls that led there. Source text lives in the SourceMgr for the whole
// compilation, so tokens and syntax trees hold plain pointers into it.
#pragma once

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/SMLoc.h"
#include "llvm/Support/SourceMgr.h"

#include <string>

namespace dlc::fe {

class Diagnostics {
public:
  Diagnostics(llvm::SourceMgr &sources, llvm::raw_ostream &os) : sources(sources), os(os) {}

  /// Reports an error. Returns failure, so that `return diags.error(...)` reads well. An invalid
  /// location prints the message alone.
  llvm::LogicalResult error(llvm::SMLoc loc, const llvm::Twine &message);
  void note(llvm::SMLoc loc, const llvm::Twine &message);
  void remark(llvm::SMLoc loc, const llvm::Twine &message);
  /// Reports what a context says of a place that locationOf gave, with its notes.
  void report(mlir::Diagnostic &diagnostic);

  mlir::Location locationOf(mlir::MLIRContext &context, llvm::SMLoc loc) const;

  unsigned errorCount() const { return errors; }

private:
  llvm::SMLoc find(mlir::Location location) const;
  void print(llvm::SMLoc loc, llvm::SourceMgr::DiagKind kind, const llvm::Twine &message);

  llvm::SourceMgr &sources;
  llvm::raw_ostream &os;
  unsigned errors = 0;
};

/// "; did you mean 'x'?" for the candidate nearest to `name` by edit distance, else "".
std::string didYouMean(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates);

/// "'a', 'b', 'c'", cut after a dozen names.
std::string listNames(llvm::ArrayRef<llvm::StringRef> names);

} // namespace dlc::fe
