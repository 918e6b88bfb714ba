// Plans kernels for CPUs on oneDNN.
//
// oneDNN picks implementations by the instruction sets it may use, which is fixed for a process
// before its first use: one process plans for one target.
#pragma once

#include "runtime/core/KernelPlanner.h"
#include "runtime/cpu/CpuTarget.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <memory>
#include <string>

namespace dlc::rt {

class CpuPlanner final : public KernelPlanner {
public:
  /// Throws Error if the target is unknown, not for this machine, or other than the one that this
  /// process plans for already.
  CpuPlanner(const std::string &targetName, unsigned threads);

  const PlannerTarget &target() const noexcept override { return description; }
  CandidateList candidates(const KernelRequest &request) noexcept override;
  std::vector<uint8_t> finalise(const KernelRequest &request, const KernelCandidate &choice,
                                std::string &reason) noexcept override;
  double generatedCost(uint64_t bytes, uint64_t flops) const noexcept override;
  double generatedCost(const KernelRequest &request) const noexcept override;

private:
  CandidateList search(const KernelRequest &request);
  /// Convolutions that are ours, in each family of layouts.
  void addOwn(const KernelRequest &request, CandidateList &list) const;
  void addOwn(const KernelRequest &request, const char *implementation,
              const std::optional<std::vector<Layout>> &layouts, CandidateList &list) const;

  CpuTarget costs;
  PlannerTarget description;
  dnnl::engine engine;
};

/// What the speed of a kernel with these layouts depends on.
KernelTraits kernelTraits(const KernelRequest &request, const std::vector<Layout> &layouts,
                          const std::string &implementation);

/// FLOPs that the tables' efficiencies are of: those of the direct sum, but of our Winograd its
/// own.
uint64_t pricedFlops(const KernelRequest &request, const KernelCandidate &candidate);

/// The planner for a target, or null with `reason` set. Costs assume teams of `threads`.
std::unique_ptr<KernelPlanner> makeCpuPlanner(const std::string &targetName, unsigned threads,
                                              std::string &reason) noexcept;

/// Lets oneDNN use these instruction sets and no others; throws Error if it is too late for that.
void limitInstructionSets(const CpuTarget &target);

} // namespace dlc::rt
