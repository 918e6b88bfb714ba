// NVIDIA's assembler.
#pragma once

#include "passes/codegen/EmittedCode.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace dlc {

/// The path of ptxas: that of CUDA_HOME, else of /usr/local/cuda, or of the PATH; nothing if there
/// is none.
std::optional<std::string> findAssembler();

/// What the assembler makes of a text.
struct Assembled {
  std::string binary;                // empty if it fails
  std::string reason;                // why
  std::vector<std::string> spilling; // kernels that keep registers in memory, by name
};

/// Assembles PTX for an architecture, "sm_90", and adds to the launches what registers kernels
/// need.
Assembled assemble(llvm::StringRef assembler, llvm::StringRef ptx, llvm::StringRef architecture,
                   llvm::StringMap<Launch> &launches);

} // namespace dlc
