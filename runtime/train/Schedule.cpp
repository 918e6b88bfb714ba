#include "runtime/train/Schedule.h"

#include "runtime/artifact/Error.h"
#include "runtime/train/Arguments.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dlc::rt {

void Plateau::observe(double value, bool higherIsBetter) {
  constexpr double threshold = 1e-4;
  bool better = higherIsBetter ? value > best * (1 + threshold) : value < best * (1 - threshold);
  if (std::isfinite(value) && (!hasBest || better)) {
    hasBest = true;
    best = value;
    badEpochs = 0;
  } else if (++badEpochs > patience) {
    scale *= factor;
    badEpochs = 0;
  }
}

Schedule::Schedule(const std::vector<std::unique_ptr<artifact::CallT>> &entries, double baseRate,
                   int64_t stepsPerEpoch, int64_t totalSteps)
    : baseRate(baseRate), stepsPerEpoch(stepsPerEpoch), totalSteps(totalSteps) {
  for (const auto &entry : entries) {
    if (entry->name == "warm_up") {
      double steps = numberOf(*entry, "steps", 0);
      if (steps == 0)
        steps = numberOf(*entry, "epochs", 1) * static_cast<double>(stepsPerEpoch);
      warmUps.push_back({std::llround(steps)});
    } else if (entry->name == "step") {
      drops.push_back({numbersOf(*entry, "at"), numberOf(*entry, "factor", 0.1)});
    } else if (entry->name == "cosine") {
      cosines.push_back(numberOf(*entry, "floor", 0));
    } else if (entry->name == "exponential") {
      exponentials.push_back(numberOf(*entry, "gamma", 1));
    } else if (entry->name == "poly") {
      polynomials.push_back(numberOf(*entry, "power", 1));
    } else if (entry->name == "reduce_on_plateau") {
      Plateau &plateau = plateaus.emplace_back();
      plateau.factor = numberOf(*entry, "factor", plateau.factor);
      plateau.patience =
          std::llround(numberOf(*entry, "patience", static_cast<double>(plateau.patience)));
    } else if (entry->name != "constant") {
      throw Error(ErrorCode::Artifact,
                  "schedule entry '" + entry->name +
                      "' is not known to this dlc-run; known are constant, warm_up, step, cosine, "
                      "exponential, poly, reduce_on_plateau");
    }
  }
}

bool Schedule::countsToAnEnd(const std::vector<std::unique_ptr<artifact::CallT>> &entries) {
  return std::any_of(entries.begin(), entries.end(), [](const auto &entry) {
    return entry->name == "cosine" || entry->name == "poly";
  });
}

double Schedule::rate(int64_t step) const {
  double rate = baseRate;
  auto at = static_cast<double>(step);
  for (WarmUp warmUp : warmUps)
    rate *= step < warmUp.steps ? (at + 1) / static_cast<double>(warmUp.steps) : 1;
  double epoch = std::floor(at / static_cast<double>(std::max<int64_t>(stepsPerEpoch, 1)));
  for (const Drop &drop : drops)
    for (double dropEpoch : drop.epochs)
      rate *= epoch >= dropEpoch ? drop.factor : 1;
  for (double gamma : exponentials)
    rate *= std::pow(gamma, epoch);
  double progress =
      std::clamp(at / static_cast<double>(std::max<int64_t>(totalSteps, 1)), 0.0, 1.0);
  for (double floor : cosines)
    rate *= floor + (1 - floor) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
  for (double power : polynomials)
    rate *= std::pow(1 - progress, power);
  for (const Plateau &plateau : plateaus)
    rate *= plateau.scale;
  return rate;
}

void Schedule::observe(double value, bool higherIsBetter) {
  for (Plateau &plateau : plateaus)
    plateau.observe(value, higherIsBetter);
}

} // namespace dlc::rt
