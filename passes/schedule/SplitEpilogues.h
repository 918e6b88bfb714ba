// What no kernel of the target does in its epilogue, before layouts are chosen.
#pragma once

#include "passes/planning/TargetKernels.h"

namespace dlc {

/// Makes a sum of its own of each bias that no kernel takes: op(x, bias) = op(x) + bias.
void splitEpilogues(nn::ModelOp model, TargetKernels &kernels);

} // namespace dlc
