// Steps of several micro-batches.
//
// A step of K micro-batches runs forward and backward K times; what a rank contributes to a
// collective is the sum of all, in their order. So K micro-batches on one rank are what K ranks
// would be: the same numbers in the same order.
#pragma once

#include "runtime/artifact/Artifact.h"

#include <vector>

namespace dlc::rt {

/// By instruction: true for what runs once a step, in the last micro-batch alone, which is the
/// optimizer. Throws Error(BadInput) if the backward pass needs what is known after the last
/// micro-batch only.
std::vector<bool> runOncePerStep(const Artifact &artifact, const artifact::Program &program);

} // namespace dlc::rt
