// Finds assignments, inputs and model parameters whose value nothing can use, so that a typo does
// not vanish.
#pragma once

#include "frontend/syntax/AST.h"
#include "frontend/syntax/Diagnostics.h"

namespace dlc::fe {

/// Checks all functions and the model of a file. Reports every finding.
llvm::LogicalResult checkNames(const ModelFile &file, Diagnostics &diags);

} // namespace dlc::fe
