#include "runtime/train/Predict.h"

#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/Error.h"
#include "runtime/data/Npy.h"
#include "runtime/data/Png.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/Evaluate.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

namespace dlc::rt {

namespace {

/// All samples of one output.
struct Output {
  std::string name;
  std::vector<int64_t> shape; // of one sample
  std::vector<float> values;

  int64_t sampleElements() const {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  }
};

} // namespace

static std::vector<Output> outputsOf(const Artifact &artifact, const artifact::Program &program) {
  std::vector<Output> outputs;
  if (program.results())
    for (const artifact::Result *result : *program.results())
      if (result->kind() == artifact::ResultKind::Output) {
        std::vector<int64_t> shape =
            readShape(*artifact->buffers()->Get(result->buffers()->Get(0))->type());
        outputs.push_back({result->name()->str(), {shape.begin() + 1, shape.end()}, {}});
      }
  if (outputs.empty())
    throw Error(ErrorCode::Artifact, "the model names no output, so there is nothing to predict");
  return outputs;
}

static void runAll(Session &session, const Dataset &dataset, std::vector<Output> &outputs) {
  const artifact::Program &program = requireProgram(session.artifact(), "predict");
  std::vector<int64_t> samples(static_cast<size_t>(dataset.samples()));
  std::iota(samples.begin(), samples.end(), 0);
  BatchPlan plan = BatchPlan::evaluation(samples, {0, 1, static_cast<int64_t>(program.batch())});
  Destinations inputs = destinationsOf(session, "predict", dataset.inputs());
  BatchLoader loader(dataset, plan, 0, {}, inputs);
  for (int64_t step = 0; step < plan.steps(); ++step) {
    BatchLoader::Loaded loaded = loader.acquire();
    setStepScalars(session, 0, step, program.batch(), loaded.batch.valid);
    session.run("predict", loaded.slot, static_cast<uint64_t>(step));
    for (Output &output : outputs) {
      std::vector<float> batch = session.output("predict", output.name);
      batch.resize(static_cast<size_t>(loaded.batch.valid * output.sampleElements()));
      output.values.insert(output.values.end(), batch.begin(), batch.end());
    }
    loader.release();
  }
}

static void writePictures(const Output &output, int64_t samples, const std::string &base) {
  auto [low, high] = std::minmax_element(output.values.begin(), output.values.end());
  bool isShare = *low >= 0 && *high <= 1;
  float black = isShare ? 0 : *low, white = isShare ? 1 : *high;
  float scale = white > black ? 255 / (white - black) : 0;
  auto size = static_cast<size_t>(output.sampleElements());
  std::vector<uint8_t> pixels(size);
  for (int64_t sample = 0; sample < samples; ++sample) {
    auto from = output.values.begin() + static_cast<ptrdiff_t>(size) * sample;
    std::transform(from, from + static_cast<ptrdiff_t>(size), pixels.begin(), [&](float value) {
      return static_cast<uint8_t>(std::clamp((value - black) * scale + 0.5f, 0.0f, 255.0f));
    });
    std::string number = std::to_string(sample);
    number.insert(0, number.size() < 5 ? 5 - number.size() : 0, '0');
    writePng(base + "-" + number + ".png", output.shape[1], output.shape[2], pixels);
  }
}

void predict(Session &session, const PredictOptions &options, Console &console) {
  const Artifact &artifact = session.artifact();
  Dataset dataset(dataPipeline(artifact), inputSpecs(artifact, "predict"), inputNames(artifact),
                  options.data);
  dataset.setStatistics(loadWeights(session, options.init));
  for (const std::string &notice : dataset.notices())
    console.line("note: " + notice);
  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  if (error)
    throw Error(ErrorCode::Runtime,
                "cannot write the directory '" + options.directory + "': " + error.message());
  std::vector<Output> outputs = outputsOf(artifact, requireProgram(artifact, "predict"));
  runAll(session, dataset, outputs);
  for (const Output &output : outputs) {
    std::string base = options.directory + "/" + output.name;
    std::vector<int64_t> shape = {dataset.samples()};
    shape.insert(shape.end(), output.shape.begin(), output.shape.end());
    writeNpy(base + ".npy", shape, output.values);
    bool isPicture = output.shape.size() == 3 && output.shape[0] == 1;
    if (isPicture)
      writePictures(output, dataset.samples(), base);
    console.line(base + ".npy: " + shapeText(shape) + (isPicture ? ", and as PNG" : ""));
  }
}

} // namespace dlc::rt
