// One model on its way through the stages.
#pragma once

#include "passes/Passes.h"
#include "passes/codegen/EmittedCode.h"
#include "runtime/artifact/Artifact.h"
#include "tools/driver/CompileOptions.h"
#include "tools/driver/Diagnostics.h"
#include "tools/driver/ModelSource.h"

namespace dlc {

/// Hears what a compilation is at, e.g. "train: dlc-differentiate".
using ProgressListener = std::function<void(llvm::StringRef doing)>;

class Compilation {
public:
  /// Errors go to `errors`, one line each; it and the options outlive the compilation.
  Compilation(const CompileOptions &options, llvm::raw_ostream &errors,
              ProgressListener progress = {});

  // Each step says false after an error, and relies on those before it.
  bool load(const ModelSource &source);
  bool lower(nn::Stage stage);
  /// The text of a lowered model. Locations carry the layers' names, which later stages report.
  std::string text() const;
  /// Bytes of a rank's device, of a model at stage exec: the memory plan's, and what the device
  /// adds up in that travels as bf16, as large as the largest such bucket without
  /// its padding to ranks.
  uint64_t plannedBytes() const;
  /// Machine code of the generated kernels, of a model at stage exec; `text` receives what it was
  /// on the way.
  bool emitCode(EmittedCode &code, const CodeText &text = {});
  /// The artifact, verified as dlc-run will verify it.
  std::optional<rt::Artifact> emitArtifact();

  nn::ModelOp model() const { return loaded; }
  /// Reports an error; false, for the caller to return.
  bool fail(const llvm::Twine &message);

private:
  const CompileOptions &options;
  llvm::raw_ostream &errors;
  ProgressListener progress;
  mlir::MLIRContext context;
  OneLineDiagnostics diagnostics;
  std::string name; // of the source
  mlir::OwningOpRef<mlir::ModuleOp> module;
  nn::ModelOp loaded;
};

} // namespace dlc
