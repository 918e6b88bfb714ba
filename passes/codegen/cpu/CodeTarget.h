// The CPU that code is emitted for.
#pragma once

#include "runtime/core/KernelPlanner.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace dlc {

/// What to emit code for.
struct CodeTarget {
  std::string cpu;      // LLVM's name of the CPU, or x86-64-v2/3/4
  std::string features; // LLVM's feature string
  unsigned vectorBytes = 64;

  /// What generated code may use: exactly the instruction sets that the target's artifacts demand
  /// of their host.
  static CodeTarget of(const rt::PlannerTarget &target);
  /// True if the features name one, e.g. "avx512bf16".
  bool has(llvm::StringRef feature) const;
};

} // namespace dlc
