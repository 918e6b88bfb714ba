// FILE of the command line: an artifact, or a model that the `dlc` beside this program compiles.
//
// Compiled models are kept under a hash of everything that went into them: the texts of the model
// and its imports, the options, the compiler and this machine.
#pragma once

#include <string>
#include <vector>

namespace dlc::run {

/// True for .dl and .mlir.
bool isModel(const std::string &file);

struct CompiledModel {
  std::string artifact; // empty if the compiler failed; it has said why
  int exitCode = 0;
};

/// Compiles, unless the cache has the result. Throws Error if `dlc` or the cache cannot be used.
CompiledModel compileModel(const std::string &file, const std::vector<std::string> &options,
                           unsigned threads);

} // namespace dlc::run
