// Samples as rows that a device can gather from arrays by itself.
#pragma once

#include "runtime/core/ArrayRow.h"
#include "runtime/data/steps/Sample.h"

namespace dlc::rt {

/// True if the sample has nothing but elements of an array that its source holds, of 8 or 16 bits,
/// in other places, scaled, replaced, or zeros, in no more dimensions and channels than a row can
/// say.
bool isOfHeldArray(const Sample &sample);

/// Of the view of such a sample.
ArrayRow arrayRow(const View &view);

} // namespace dlc::rt
