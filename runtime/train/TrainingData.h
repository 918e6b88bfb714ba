// The samples of a run: what is trained on, and what validates it.
//
// Validation is the data given for it, else the share that the model's data block holds back. All
// ranks hold equal objects. Immutable after split and statistics are set.
#pragma once

#include "runtime/train/DataRecord.h"
#include "runtime/train/Signature.h"
#include "runtime/train/TrainOptions.h"

#include <optional>

namespace dlc::rt {

class TrainingData {
public:
  /// Throws Error(BadInput) as Dataset does.
  TrainingData(const Artifact &artifact, const TrainOptions &options);

  /// Holds the share of the data block back, if validation has no data of its own. Before all else.
  void split(uint64_t seed);
  /// Measures what normalize(dataset) needs, or takes it over from a checkpoint.
  void measureStatistics();
  void setStatistics(const Dataset::Statistics &statistics);
  DataRecord record() const { return {training.statistics(), training.classes()}; }

  const Dataset &trainingSet() const { return training; }
  const std::vector<int64_t> &trainingSamples() const { return parts.training; }
  const Dataset &validationSet() const { return validation ? *validation : training; }
  const std::vector<int64_t> &validationSamples() const { return parts.validation; }
  /// True if the data block's share is held back, which samples the seed says.
  bool holdsBack() const { return heldBack > 0; }
  bool hasValidation() const { return !parts.validation.empty(); }
  /// Dataset::holdArrays of both, but of a validation in tiles.
  std::vector<uint64_t> holdArrays(const Artifact &artifact);
  std::vector<std::string> notices() const;

private:
  Dataset training;
  std::optional<Dataset> validation; // of its own files
  double heldBack = 0;               // for validation
  Split parts;
};

} // namespace dlc::rt
