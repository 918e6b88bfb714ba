// `dlc compile` and `dlc inspect` of a model: the driver's results, written and printed.
#pragma once

#include "tools/driver/CompileOptions.h"

namespace dlc {

/// Compiles a file and writes what came of it to `output` ("-" is standard output; empty stands for
/// it, too, or for MODEL.dlx where that is an artifact); diagnostics go to standard error, one line
/// each. Returns the exit code.
int compileFile(const std::string &input, const std::string &output, const CompileOptions &options);

/// Prints parameters and programs of a model that is not compiled. Returns the exit code.
int inspectModel(const std::string &input, const CompileOptions &options, bool json);

} // namespace dlc
