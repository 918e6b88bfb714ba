// The graph language's public interface: from a .dl file to the nn dialect.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace dlc::fe {

struct Options {
  std::vector<std::string> sets; // "name=value": parameters and entries of blocks
};

/// The module with one nn.model at stage nn, or null after errors, which go to `diagnostics`.
mlir::OwningOpRef<mlir::ModuleOp> elaborateFile(llvm::StringRef path, const Options &options,
                                                mlir::MLIRContext &context,
                                                llvm::raw_ostream &diagnostics);

/// The same for text that is in no file; `name` stands for the file's in messages and locations.
mlir::OwningOpRef<mlir::ModuleOp> elaborateText(llvm::StringRef text, llvm::StringRef name,
                                                const Options &options, mlir::MLIRContext &context,
                                                llvm::raw_ostream &diagnostics);

/// What `dlc help [NAME]` prints; for the empty name a list of all. False if there is no such name:
/// then the one line printed says so.
bool printHelp(llvm::StringRef name, llvm::raw_ostream &os);

/// All entries at full length, in Markdown: docs/operators.md.
void printReference(llvm::raw_ostream &os);

} // namespace dlc::fe
