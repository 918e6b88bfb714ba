#include "runtime/train/TrainingData.h"

#include "runtime/artifact/Error.h"
#include "runtime/train/Report.h"
#include "runtime/train/TiledEvaluation.h"

namespace dlc::rt {

TrainingData::TrainingData(const Artifact &artifact, const TrainOptions &options)
    : training(dataPipeline(artifact), inputSpecs(artifact, "train"), inputNames(artifact),
               options.data) {
  if (!options.validation.empty()) {
    validation.emplace(dataPipeline(artifact), evaluationInputs(artifact), inputNames(artifact),
                       options.validation);
    requireSameClasses(training.classes(), "training", validation->classes(), "validation",
                       "give both the same folders");
  } else if (artifact.program("eval") && artifact->data()) {
    heldBack = artifact->data()->validation();
  }
}

void TrainingData::split(uint64_t seed) {
  parts = training.split(heldBack, seed);
  if (parts.training.empty() && !parts.validation.empty())
    throw Error(ErrorCode::BadInput,
                "validation = " + figureText(heldBack) + " holds back all " +
                    std::to_string(parts.validation.size()) +
                    " samples and leaves none to train on: set another share, or give --val");
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

std::vector<uint64_t> TrainingData::holdArrays(const Artifact &artifact) {
  std::vector<uint64_t> sizes = training.holdArrays({true});
  if (validation && !isEvaluatedInTiles(artifact, *validation))
    for (uint64_t bytes : validation->holdArrays({}))
      sizes.push_back(bytes);
  return sizes;
}

std::vector<std::string> TrainingData::notices() const {
  std::vector<std::string> notices = training.notices();
  if (validation)
    notices.insert(notices.end(), validation->notices().begin(), validation->notices().end());
  return notices;
}

} // namespace dlc::rt
