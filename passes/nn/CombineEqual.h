// Common subexpression elimination, for passes that end with it.
#pragma once

#include "dialects/NN/NN.h"

namespace dlc {

/// Leaves the first of equal ops, and no dead ones.
void combineEqual(nn::ProgramOp program);

} // namespace dlc
