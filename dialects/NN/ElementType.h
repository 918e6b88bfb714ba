// Element types as artifacts and kernel planners name them.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include "mlir/IR/Types.h"

namespace dlc::nn {

/// `element` is one of the dialect's element types.
artifact::DType dtypeOf(mlir::Type element);

} // namespace dlc::nn
