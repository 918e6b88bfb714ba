// Plans kernels for GPUs on cuDNN and cuBLASLt, on machines that need not have one.
//
// Convolutions are cuDNN's, by engines that are there already, deterministic and, in strict math,
// exact; products are cuBLASLt's. Both write in place of their results alone: what they cannot do,
// pooling and reorders too, is left to generated code, as are convolutions with a filter for each
// channel, which cuDNN has without tensor cores alone.
#pragma once

#include "runtime/core/KernelPlanner.h"
#include "runtime/cuda/CudaTarget.h"
#include "runtime/cuda/plans/CudnnGraph.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dlc::rt {

class CudaPlanner final : public KernelPlanner {
public:
  /// What a kernel of a library may use at most, unless no engine does with it: one slab of it
  /// serves all, and has room for other plans of the same operation.
  static constexpr uint64_t slabBytes = 32 << 20;
  /// Plans that a kernel is stored with beside its own.
  static constexpr size_t mostAlternatives = 3;

  /// Throws Error if the target is unknown or too old.
  CudaPlanner(const std::string &targetName, const cudnn::Functions &library);

  const PlannerTarget &target() const noexcept override { return description; }
  CandidateList candidates(const KernelRequest &request) noexcept override;
  std::vector<uint8_t> finalise(const KernelRequest &request, const KernelCandidate &choice,
                                std::string &reason) noexcept override;
  double generatedCost(uint64_t bytes, uint64_t flops) const noexcept override;
  double generatedCost(const KernelRequest &request) const noexcept override;

private:
  CandidateList convolutions(const KernelRequest &request) const;
  CandidateList products(const KernelRequest &request) const;
  KernelCandidate product(const KernelRequest &request, std::vector<Layout> layouts) const;
  /// Admissible plans that fit the slab, best first; one that does not, if none does.
  const std::vector<cudnn::Plan> &plansOf(const KernelRequest &request, std::string &reason) const;

  struct Planned {
    std::vector<cudnn::Plan> plans;
    std::string reason; // where there are none
  };

  CudaTarget costs;
  const cudnn::Functions &library;
  PlannerTarget description;
  mutable std::mutex mutex;
  mutable std::map<std::string, Planned> known; // by request
};

/// The planner for a target, or null with `reason` set: an unknown target, or no cuDNN. Costs are a
/// whole device's: `threads` says nothing.
std::unique_ptr<KernelPlanner> makeCudaPlanner(const std::string &targetName, unsigned threads,
                                               std::string &reason) noexcept;

} // namespace dlc::rt
