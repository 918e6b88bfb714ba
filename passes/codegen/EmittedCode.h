// What an emitter makes of a model's clusters.
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dlc {

/// How a kernel is launched on a GPU.
struct Launch {
  uint32_t threads = 0;     // of a block
  uint32_t sharedBytes = 0; // of a block, declared by the kernel
  uint32_t registers = 0;   // of a thread; 0: not known
};

struct EmittedCode {
  struct Module {
    std::string architecture; // "sm_90"; "" if the target has but one
    std::string code;
  };
  /// Empty if there is nothing to generate. Kernels' functions are in the first; further ones are
  /// the same kernels for other devices.
  std::vector<Module> modules;
  /// By function; none on a CPU.
  llvm::StringMap<Launch> launches;
};

/// Where an emitter prints what code it passes through; null: nowhere.
struct CodeText {
  llvm::raw_ostream *linalg = nullptr, *llvm = nullptr, *ptx = nullptr;
};

} // namespace dlc
