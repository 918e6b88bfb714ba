// The learning rate over a run: a base rate times the factors of all schedule entries.
//
// Everything but reduce_on_plateau is a function of the step; the plateau's state is part of
// checkpoints. One thread at a time; all ranks compute the same rates.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace dlc::rt {

/// torch.optim.lr_scheduler.ReduceLROnPlateau with a relative threshold of 1e-4: after more than
/// `patience` epochs without improvement the factor is multiplied.
struct Plateau {
  double factor = 0.1;
  int64_t patience = 10;

  double scale = 1;
  bool hasBest = false;
  double best = 0;
  int64_t badEpochs = 0;

  void observe(double value, bool higherIsBetter);
};

class Schedule {
public:
  /// `entries` as in the train block: constant, warm_up(epochs | steps), step(at, factor),
  /// cosine(floor), exponential(gamma), poly(power), reduce_on_plateau(factor, patience). Throws
  /// Error(Artifact) for others.
  Schedule(const std::vector<std::unique_ptr<artifact::CallT>> &entries, double baseRate,
           int64_t stepsPerEpoch, int64_t totalSteps);

  /// True if an entry counts to the end of the run.
  static bool countsToAnEnd(const std::vector<std::unique_ptr<artifact::CallT>> &entries);

  /// Rate of a step, counted from 0 over the whole run.
  double rate(int64_t step) const;
  /// Tells the plateau an epoch's monitored value.
  void observe(double value, bool higherIsBetter);

  std::vector<Plateau> plateaus; // state for checkpoints

private:
  struct WarmUp {
    int64_t steps;
  };
  struct Drop {
    std::vector<double> epochs;
    double factor;
  };
  double baseRate;
  int64_t stepsPerEpoch, totalSteps;
  std::vector<WarmUp> warmUps;
  std::vector<Drop> drops;
  std::vector<double> cosines;      // floors, as a share of the base rate
  std::vector<double> exponentials; // gammas
  std::vector<double> polynomials;  // powers
};

} // namespace dlc::rt
