// A planned CPU kernel and its bytes in the artifact (plan.fbs).
#pragma once

#include "runtime/core/KernelPlanner.h"

#include <span>

namespace dlc::rt {

struct CpuPlan {
  KernelRequest request; // every operand with its layout
  std::string implementation;
  uint64_t workspaceBytes = 0;

  /// True if the request's ranks, extents and vectors are what its operation can have; whether they
  /// fit each other is safe to ask the library.
  static bool isConsistent(const KernelRequest &request);

  /// What it wants of a dispatch's buffers: the request's operands, and last the workspace, if it
  /// has one.
  std::vector<OperandType> buffers() const;
  /// Throws Error(Artifact) naming the kernel unless its operands, which the verifier has compared
  /// with the dispatches' buffers, are the plan's: the library takes their sizes on trust.
  void requireOperands(const artifact::Kernel &kernel) const;

  std::vector<uint8_t> serialize() const;
  /// Throws Error(Artifact) naming the kernel if the bytes are not a plan.
  static CpuPlan deserialize(std::span<const uint8_t> bytes, const std::string &kernel);
};

/// A kernel of the artifact. Throws Error(Artifact) naming it if its plan is damaged or another
/// one's.
StoredKernel readCpuKernel(const artifact::Kernel &kernel, const artifact::Target &target);

} // namespace dlc::rt
