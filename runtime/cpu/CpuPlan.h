// A planned CPU kernel and its bytes in the artifact (plan.fbs).
#pragma once

#include "runtime/core/KernelPlanner.h"

#include <span>

namespace dlc::rt {

struct CpuPlan {
  KernelRequest request; // every operand with its layout
  bool winograd = false;
  std::string implementation;
  uint64_t workspaceBytes = 0;

  /// True if the request's ranks and vectors fit its operation; anything else is safe to hand to
  /// the library.
  static bool isConsistent(const KernelRequest &request);

  std::vector<uint8_t> serialize() const;
  /// Throws Error(Artifact) naming the kernel if the bytes are not a plan.
  static CpuPlan deserialize(std::span<const uint8_t> bytes, const std::string &kernel);
};

} // namespace dlc::rt
