// Convolutions of few channels a group as ones of fewer, larger groups, before layouts are chosen.
#pragma once

#include "passes/planning/TargetKernels.h"

namespace dlc {

/// Merges groups where the target's kernels cost less for it: a group then has the weights of
/// several, and zeros between channels of different ones. Libraries have fast kernels for groups of
/// as many channels as a vector has; for fewer, they multiply tiny matrices.
void mergeGroups(nn::ModelOp model, TargetKernels &kernels);

} // namespace dlc
