#include "runtime/train/TrainingData.h"

#include <numeric>

namespace dlc::rt {

static std::vector<int64_t> allOf(const Dataset &dataset) {
  std::vector<int64_t> samples(static_cast<size_t>(dataset.samples()));
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

TrainingData::TrainingData(const Artifact &artifact, const TrainOptions &options, uint64_t seed)
    : training(dataPipeline(artifact), inputSpecs(artifact, "train"), inputNames(artifact),
               options.data) {
  bool canEvaluate = artifact.program("eval") != nullptr;
  if (!options.validation.empty()) {
    validation.emplace(dataPipeline(artifact), inputSpecs(artifact, "eval"), inputNames(artifact),
                       options.validation);
    split = {allOf(training), allOf(*validation)};
  } else if (canEvaluate && artifact->data() && artifact->data()->validation() > 0) {
    split = splitSamples(training.samples(), artifact->data()->validation(), seed);
  } else {
    split.training = allOf(training);
  }
}

void TrainingData::measureStatistics() {
  training.measureStatistics(split.training);
  if (validation)
    validation->setStatistics(training.statistics());
}

void TrainingData::setStatistics(const Dataset::Statistics &statistics) {
  training.setStatistics(statistics);
  if (validation)
    validation->setStatistics(statistics);
}

std::vector<std::string> TrainingData::notices() const {
  std::vector<std::string> notices = training.notices();
  if (validation)
    notices.insert(notices.end(), validation->notices().begin(), validation->notices().end());
  return notices;
}

} // namespace dlc::rt
