// NVIDIA's assembler.
#pragma once

#include "passes/codegen/EmittedCode.h"

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace dlc {

/// The path of ptxas: that of CUDA_HOME, of the PATH, or of /usr/local/cuda; nothing if there is
/// none.
std::optional<std::string> findAssembler();

/// Assembles PTX for an architecture, "sm_90", and adds to the launches what registers kernels
/// need. Empty, with a reason, if the assembler fails, or if a kernel spills registers to memory.
std::string assemble(llvm::StringRef assembler, llvm::StringRef ptx, llvm::StringRef architecture,
                     llvm::StringMap<Launch> &launches, std::string &reason);

} // namespace dlc
