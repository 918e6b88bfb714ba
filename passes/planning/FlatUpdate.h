// Clusters that update a tensor elementwise, whatever its shape and layout: what one kernel can do
// for many tensors that lie one behind the other.
#pragma once

#include "dialects/NN/NN.h"

namespace dlc {

/// True if all tensors of the cluster have one shape and layout, scalars aside, every op is
/// elementwise, and zeros give zeros (scalars being finite and no divisor zero): padding lanes and
/// the gaps between slices need no mask then.
bool isFlatUpdate(mlir::Block &cluster);

/// Builds the cluster over tensors of the shape and layout of `type` in an empty region. Element
/// types stay.
void buildFlatUpdate(mlir::Block &cluster, mlir::RankedTensorType type, mlir::Region &into);

/// Text of a flat cluster over such tensors: equal text is equal code.
std::string flatUpdateText(mlir::Block &cluster, mlir::RankedTensorType type);

} // namespace dlc
