// A stage's linalg as loops over vectors. Order of the loops: the items of [begin, end), kept
// loops, reduced loops, the vector loop last among its kind.
#pragma once

#include "passes/codegen/cpu/vectorize/EmitLinalg.h"

namespace dlc {

/// Replaces the function by loops over vectors with two more arguments, begin and end of the items.
/// `lanes` is a power of two.
void vectorizeStage(LinalgStage &stage, const StagePlan &plan, unsigned lanes);

} // namespace dlc
