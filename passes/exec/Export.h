// Writes an exec model as an artifact file.
#pragma once

#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"
#include "passes/codegen/EmittedCode.h"
#include "runtime/core/KernelPlanner.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dlc {

/// The bytes of the artifact; `code` are its generated kernels. The model has passed
/// dlc-verify-exec. Emits an error for a program that reads no input, and so has no batch.
mlir::FailureOr<std::vector<uint8_t>> exportArtifact(nn::ModelOp model, const EmittedCode &code,
                                                     const rt::PlannerTarget &target);

} // namespace dlc
