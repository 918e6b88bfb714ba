// The compiler as a library: a model and options in, an artifact or text out.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "tools/driver/Compilation.h"

namespace dlc {

/// What came of a model, as the options' output says: text, or an artifact.
struct Compiled {
  std::string name; // of the model
  std::string text;
  std::optional<rt::Artifact> artifact;
};

/// Compiles a model. Nothing after an error, which is on `errors`, one line each. `batch=max` among
/// the sets stands for the largest batch within the memory limit.
std::optional<Compiled> compile(const ModelSource &source, const CompileOptions &options,
                                llvm::raw_ostream &errors, const ProgressListener &progress = {});

} // namespace dlc
