// What the command line asks of a training run.
#pragma once

#include "runtime/data/Dataset.h"

#include <optional>
#include <string>

namespace dlc::rt {

struct TrainOptions {
  DataPaths data, validation;
  std::optional<int64_t> epochs, steps; // totals, also when resuming
  std::optional<double> learningRate;
  int64_t accumulate = 1; // micro-batches a step
  bool scaleRate = false; // by the number of ranks
  std::optional<uint64_t> seed;
  bool shuffle = true;
  std::string init;         // weights to start from
  std::string save;         // weights at the end
  std::string runDirectory; // "": runs/MODEL-k
  bool resume = false;
  std::string trace, log;
  bool stopOnNan = true;
  std::string file; // the artifact, for the record
};

} // namespace dlc::rt
