#include "runtime/train/TrainingData.h"

#include <numeric>

namespace dlc::rt {

static std::vector<int64_t> allOf(const Dataset &dataset) {
  std::vector<int64_t> samples(static_cast<size_t>(dataset.samples()));
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

TrainingData::TrainingData(const Artifact &artifact, const TrainOptions &options)
    : training(dataPipeline(artifact), inputSpecs(artifact, "train"), inputNames(artifact),
               options.data) {
  if (!options.validation.empty())
    validation.emplace(dataPipeline(artifact), inputSpecs(artifact, "eval"), inputNames(artifact),
                       options.validation);
  else if (artifact.program("eval") && artifact->data())
    heldBack = artifact->data()->validation();
}

void TrainingData::split(uint64_t seed) {
  if (heldBack > 0)
    parts = splitSamples(training.samples(), heldBack, seed);
  else
    parts.training = allOf(training);
  if (validation)
    parts.validation = allOf(*validation);
}

void TrainingData::measureStatistics() {
  training.measureStatistics(parts.training);
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
