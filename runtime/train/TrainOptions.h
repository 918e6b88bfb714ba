// What the command line asks of a training run.
//
// What is not given stays empty: a resumed run takes it from what it resumes.
#pragma once

#include "runtime/data/Dataset.h"

#include <optional>
#include <string>
#include <vector>

namespace dlc::rt {

struct TrainOptions {
  DataPaths data, validation;
  std::optional<int64_t> epochs, steps; // totals, also when resuming
  std::optional<double> learningRate;   // the model's
  std::optional<int64_t> accumulate;    // micro-batches a step; 1
  std::optional<bool> scaleRate;        // by the number of ranks; false
  std::optional<bool> scaleEpochs;      // divides them by that; false
  std::optional<uint64_t> seed;         // 0
  std::optional<bool> shuffle;          // true
  std::optional<bool> stopOnNan;        // true
  std::string init;                     // weights to start from
  std::vector<std::string> initExcept;  // patterns of what keeps its initial value
  std::string save;                     // weights at the end
  std::optional<int64_t> saveEvery;     // steps between checkpoints; none within an epoch
  std::string runDirectory;             // "": runs/MODEL-k
  bool resume = false;
  std::vector<std::string> overrides; // facts of the recipe that a resumed run changes
  std::string trace, log;
  std::string file;  // the artifact, for the record
  std::string model; // what it was compiled of, if this program did that
};

} // namespace dlc::rt
