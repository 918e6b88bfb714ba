#include "runtime/train/TrainingData.h"

#include "runtime/artifact/Error.h"

#include <algorithm>

namespace dlc::rt {

/// Class 3 of the one is class 3 of the other.
static void checkClasses(const Dataset &training, const Dataset &validation) {
  auto numbered = training.classes(), others = validation.classes();
  for (const auto &[source, classes] : others) {
    auto found = numbered.find(source);
    if (found == numbered.end() || found->second == classes)
      continue;
    auto [one, other] =
        std::mismatch(classes.begin(), classes.end(), found->second.begin(), found->second.end());
    bool isMissing = other != found->second.end() && (one == classes.end() || *other < *one);
    throw Error(ErrorCode::BadInput,
                "the folders that number the classes of " + source + " differ: " +
                    (isMissing ? "validation lacks " + *other : "training lacks " + *one) +
                    "; give both the same folders");
  }
}

TrainingData::TrainingData(const Artifact &artifact, const TrainOptions &options)
    : training(dataPipeline(artifact), inputSpecs(artifact, "train"), inputNames(artifact),
               options.data) {
  if (!options.validation.empty()) {
    validation.emplace(dataPipeline(artifact), inputSpecs(artifact, "eval"), inputNames(artifact),
                       options.validation);
    checkClasses(training, *validation);
  } else if (artifact.program("eval") && artifact->data()) {
    heldBack = artifact->data()->validation();
  }
}

void TrainingData::split(uint64_t seed) {
  parts = training.split(heldBack, seed);
  if (validation)
    parts.validation = validation->evaluationSamples();
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
