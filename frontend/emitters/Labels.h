// Classes that losses and metrics compare with, of which one may be left out.
#pragma once

#include "frontend/operators/Emission.h"

#include <optional>

namespace dlc::fe {

/// Of what is ignored `classes` has some class, and `counted` (bool, null if nothing is ignored) is
/// false.
struct Labels {
  mlir::Value classes;
  mlir::Value counted;
  std::optional<int64_t> ignored;
};

/// The labels of an argument, of `classes` classes, less those of the call's `ignore`. What else
/// the data hold is refused when they are read.
mlir::FailureOr<Labels> labelsOf(const Emission &call, llvm::StringRef argument, int64_t classes);

} // namespace dlc::fe
