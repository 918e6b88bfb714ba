// Turns a model into one that computes in f64 throughout, so that constants which later passes make
// (weight / count) are exact.
#pragma once

#include "dialects/NN/NN.h"

namespace dlc::reference {

/// All float types of the model but those of 16 bits, which say where values are rounded, become
/// f64; values of constants stay.
void promoteToF64(nn::ModelOp model);

} // namespace dlc::reference
