// Object files become one shared object.
#pragma once

#include "passes/codegen/cpu/EmitObject.h"

#include <string>

namespace dlc {

/// Links objects to a shared object by the linker beside LLVM; `reason` says why it failed.
llvm::LogicalResult linkSharedObject(const Objects &objects, std::string &sharedObject,
                                     std::string &reason);

} // namespace dlc
