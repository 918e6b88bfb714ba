// The samples of a run: what is trained on, and what validates it.
//
// Validation is the data given for it, else the share that the model's data block holds back. All
// ranks hold equal objects. Immutable after statistics are set.
#pragma once

#include "runtime/train/Signature.h"
#include "runtime/train/TrainOptions.h"

#include <optional>

namespace dlc::rt {

class TrainingData {
public:
  /// Throws Error(BadInput) as Dataset does.
  TrainingData(const Artifact &artifact, const TrainOptions &options, uint64_t seed);

  /// Measures what normalize(dataset) needs, or takes it over from a checkpoint.
  void measureStatistics();
  void setStatistics(const Dataset::Statistics &statistics);
  const Dataset::Statistics &statistics() const { return training.statistics(); }

  const Dataset &trainingSet() const { return training; }
  const std::vector<int64_t> &trainingSamples() const { return split.training; }
  const Dataset &validationSet() const { return validation ? *validation : training; }
  const std::vector<int64_t> &validationSamples() const { return split.validation; }
  bool hasValidation() const { return !split.validation.empty(); }
  std::vector<std::string> notices() const;

private:
  Dataset training;
  std::optional<Dataset> validation; // of its own files
  Split split;
};

} // namespace dlc::rt
