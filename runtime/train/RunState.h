// Where a training run stands: everything besides the variables that resuming bit for bit needs.
//
// Kept as JSON in the metadata of checkpoints; doubles survive the round trip exactly.
#pragma once

#include "runtime/train/Monitor.h"
#include "runtime/train/Schedule.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dlc::rt {

struct RunState {
  int64_t step = 0;        // steps done in the whole run
  int64_t epoch = 0;       // epochs done
  int64_t stepInEpoch = 0; // steps done in the epoch begun
  bool told = true;        // what is done of the epoch begun has been validated and logged
  int ranks = 1;
  int64_t batch = 1; // per rank
  unsigned threads = 1;
  std::string scheduleHash;
  Monitor monitor;
  std::vector<Plateau> plateaus;
  std::vector<double> totals;                         // sums and counts of the epoch begun
  nlohmann::json recipe;                              // Recipe::values()
  nlohmann::json overrides = nlohmann::json::array(); // each with after_step, name, was, now

  int64_t samplePosition() const { return stepInEpoch * batch * ranks; }
  /// Steps that lead here at this many an epoch: `step`, unless ranks or batch have changed.
  int64_t place(int64_t stepsPerEpoch) const { return epoch * stepsPerEpoch + stepInEpoch; }

  std::string toJson() const;
  /// Throws Error(BadInput) naming `path` if the text is none of ours.
  static RunState fromJson(const std::string &text, const std::string &path);
};

} // namespace dlc::rt
