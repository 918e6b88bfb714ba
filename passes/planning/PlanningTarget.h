// What a model is planned for.
#pragma once

#include "dialects/NN/NN.h"
#include "runtime/core/KernelPlanner.h"

#include <memory>
#include <optional>
#include <string>

namespace dlc {

/// Attributes `target`, `threads` and `math` of the nn.model from the schedule stage on, written by
/// dlc-assign-layouts.
struct PlanningTarget {
  std::string name = "cpu:native";
  unsigned threads = 1;
  rt::Math math = rt::Math::Fast;

  /// Nothing if the model has no target yet.
  static std::optional<PlanningTarget> of(nn::ModelOp model);
  /// The model's name for a planner's target: its table of costs is a part of the target.
  static std::string nameOf(const rt::PlannerTarget &target) {
    return target.table.empty() ? target.name : target.table;
  }
  void writeTo(nn::ModelOp model) const;
};

/// The planner of a target, or null with `reason` set. `test:rules` is a planner that follows fixed
/// rules on any machine. All who ask within a context share one and what it has answered: passes
/// ask a library again for the kernels that those before them chose.
std::shared_ptr<rt::KernelPlanner> openPlanner(mlir::MLIRContext *context,
                                               const std::string &target, unsigned threads,
                                               std::string &reason);

/// The planner of the model's target, or null after a diagnostic at the model.
std::shared_ptr<rt::KernelPlanner> openPlanner(nn::ModelOp model);

} // namespace dlc
