// Writes an exec model as an artifact file.
#pragma once

#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"
#include "runtime/core/KernelPlanner.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dlc {

/// What the artifact records of how it was compiled, beside the planner's description of the
/// target.
struct ExportOptions {
  unsigned threads = 1;
  std::string math = "fast";
  std::string precision = "f32";
  double linkGbit = 10;
  double linkMicroseconds = 30;
};

/// The bytes of the artifact. `code` is the shared object of the generated kernels. The model has
/// passed dlc-verify-exec.
std::vector<uint8_t> exportArtifact(nn::ModelOp model, const std::string &code,
                                    const rt::PlannerTarget &target, const ExportOptions &options);

} // namespace dlc
