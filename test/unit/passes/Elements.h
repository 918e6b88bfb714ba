// Elements of tensors as memory has them.
#pragma once

#include "mlir/IR/Types.h"

namespace dlc::test {

/// Stores a value as a type has it.
void storeElement(mlir::Type type, char *to, double value);
double loadElement(mlir::Type type, const char *from);

} // namespace dlc::test
