// What no kernel of the target does as it is asked, before layouts are chosen.
#pragma once

#include "passes/planning/TargetKernels.h"

namespace dlc {

/// Takes from ops what no kernel of the target does beside its product. A bias of a 16-bit kernel
/// is rounded to its type, or becomes a sum of its own: op(x, bias) = op(x) + bias. An f32 result
/// of 16-bit operands becomes one of theirs that is widened.
void legalizeKernels(nn::ModelOp model, TargetKernels &kernels);

} // namespace dlc
