// Steps of several micro-batches.
//
// A step of K micro-batches runs forward and backward K times; what a rank contributes to a
// collective is the sum of all, in their order. So K micro-batches on one rank are what K ranks
// would be: the same numbers in the same order. What the backward pass needs of the whole batch, as
// the count of a masked loss, is counted in passes ahead of those, if it depends on inputs alone.
#pragma once

#include "runtime/artifact/Artifact.h"

namespace dlc::rt {

/// Throws Error(BadInput) if a program's steps cannot have several micro-batches: if what runs in
/// all of them needs what is known after the last one only, or collectives lack their sums.
void requireMicroBatches(const Artifact &artifact, const artifact::Program &program);

/// Whether steps of several micro-batches count ahead.
bool countsAhead(const artifact::Program &program);

} // namespace dlc::rt
