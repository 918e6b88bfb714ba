// FILE of the command line: an artifact, or a model that the `dlc` beside this program compiles.
//
// Compiled models are kept under a hash of everything that went into them: the texts of the model
// and its imports, the options, the compiler and this machine. They hold native code, so that the
// directory has to be this user's own, and closed to others.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "runtime/core/StopSignal.h"

#include <string>
#include <vector>

namespace dlc::run {

/// True for .dl and .mlir.
bool isModel(const std::string &file);

/// True of options for the compiler if programs will run on a GPU.
bool isForGpu(const std::vector<std::string> &options);

struct CompiledModel {
  std::string artifact; // empty if the compiler failed; it has said why
  int exitCode = 0;
};

/// Compiles, unless the cache has the result. What is not kept, for want of XDG_CACHE_HOME and
/// HOME, has a path as long as this process lives. Throws Error if `dlc` or the cache cannot be
/// used, and Error(Interrupted) after a request to stop.
CompiledModel compileModel(const std::string &file, const std::vector<std::string> &options,
                           unsigned threads, const rt::StopSignal &stop);

} // namespace dlc::run
