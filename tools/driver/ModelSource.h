// Where models come from: files, and whatever builds an nn.model.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <string>
#include <vector>

namespace dlc {

struct ModelSource {
  /// Builds a module with one nn.model, its parameters set to `sets` (name=value); null after an
  /// error, as a diagnostic of the context or a line on `errors`.
  using Build = std::function<mlir::OwningOpRef<mlir::ModuleOp>(
      mlir::MLIRContext &context, const std::vector<std::string> &sets, llvm::raw_ostream &errors)>;

  std::string name; // for messages
  Build build;
  bool hasParameters = false; // e.g. `batch`, for which a memory limit is searched
};

/// A model in the graph language (.dl) or as text of any stage (.mlir).
ModelSource sourceOf(const std::string &path);

/// The dialects that a model's text may use at any stage.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace dlc
