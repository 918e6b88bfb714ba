// The planner of targets test:rules and test:small. It follows fixed rules, so that tests of the
// schedule stage give the same text on every machine and with every version of a library.
//
// Convolutions: tensors with 16 channels or more in nChw16c and the rest plain, or all channels
// last at 1.5 times the cost, or all plain at twice. Pooling: blocked or channels last, plain is
// refused. Matrix products: plain. Reorders: any. A ReLU is taken but by convolutions of 9 x 9.
// Groups of fewer than 4 channels take 100 times as long.
//
// test:small differs in the limits of loops, which are smaller, and has no emitter.
#pragma once

#include "runtime/core/KernelPlanner.h"

namespace dlc {

class TestPlanner final : public rt::KernelPlanner {
public:
  static constexpr const char *rules = "test:rules", *small = "test:small";

  /// `name` is one of these.
  explicit TestPlanner(const std::string &name = rules);
  const rt::PlannerTarget &target() const noexcept override { return description; }
  rt::CandidateList candidates(const rt::KernelRequest &request) noexcept override;
  /// A line of text that names the kernel and its layouts; no device can run it.
  std::vector<uint8_t> finalise(const rt::KernelRequest &request, const rt::KernelCandidate &choice,
                                std::string &reason) noexcept override;
  double generatedCost(uint64_t bytes, uint64_t flops) const noexcept override;
  double generatedCost(const rt::KernelRequest &request) const noexcept override;

private:
  rt::PlannerTarget description;
};

} // namespace dlc
