// What a cluster is for, which its arithmetic no longer tells: normalisation and losses leave a
// mark on the locations of the ops that they become. Locations take no part in what is computed,
// and travel through every pass and stage.
#pragma once

#include "mlir/IR/Location.h"

namespace dlc {

inline constexpr llvm::StringLiteral normKind = "norm", lossKind = "loss";

/// The location, marked.
mlir::Location withKind(mlir::Location location, llvm::StringRef kind);

/// The mark, or empty.
llvm::StringRef kindOf(mlir::Location location);

} // namespace dlc
