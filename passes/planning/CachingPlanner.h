// Remembers a planner's answers: networks repeat their layers, and layout assignment asks the same
// question for every family and round.
#pragma once

#include "runtime/core/KernelPlanner.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dlc {

class CachingPlanner final : public rt::KernelPlanner {
public:
  explicit CachingPlanner(std::unique_ptr<rt::KernelPlanner> planner)
      : planner(std::move(planner)) {}

  const rt::PlannerTarget &target() const noexcept override { return planner->target(); }
  rt::CandidateList candidates(const rt::KernelRequest &request) noexcept override;
  std::vector<uint8_t> finalise(const rt::KernelRequest &request, const rt::KernelCandidate &choice,
                                std::string &reason) noexcept override;
  double generatedCost(uint64_t bytes, uint64_t flops) const noexcept override {
    return planner->generatedCost(bytes, flops);
  }
  double generatedCost(const rt::KernelRequest &request) const noexcept override {
    return planner->generatedCost(request);
  }

private:
  std::unique_ptr<rt::KernelPlanner> planner;
  std::map<std::string, rt::CandidateList> answers;  // by the request's text
  std::map<std::string, std::vector<uint8_t>> plans; // by the request's and the choice's
};

} // namespace dlc
