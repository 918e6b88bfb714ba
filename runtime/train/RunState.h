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
  int64_t stepsPerEpoch = 1;
  /// Where epochs began to have so many steps: the first step of the run, or the start that changed
  /// ranks, batch or data.
  struct {
    int64_t step = 0, epoch = 0, stepInEpoch = 0;
  } since;
  bool told = true; // what is done of the epoch begun has been validated and logged
  int ranks = 1;
  int64_t batch = 1; // per rank
  unsigned threads = 1;
  std::string scheduleHash;
  std::string platform; // Session::platform, and where ranks are; may be empty
  Monitor monitor;
  std::vector<Plateau> plateaus;
  std::vector<double> totals; // sums and counts of the epoch begun, empty before its first step
  nlohmann::json recipe;      // Recipe::values()
  nlohmann::json overrides = nlohmann::json::array(); // each with after_step, name, was, now

  int64_t samplePosition() const { return stepInEpoch * batch * ranks; }
  /// Steps that lead here at this many an epoch: `step`, unless the number has changed.
  int64_t place(int64_t stepsPerEpoch) const { return epoch * stepsPerEpoch + stepInEpoch; }

  std::string toJson() const;
  /// Throws Error(BadInput) naming `path` if the text is none of ours, or if its facts contradict
  /// each other.
  static RunState fromJson(const std::string &text, const std::string &path);
};

} // namespace dlc::rt
