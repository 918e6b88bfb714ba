// Samples become tiles, tiles rows of batches, whatever sample they are from; each row's outputs
// are put into place in the outputs of its sample.
#include "runtime/predict/Predict.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/data/readers/ImageDirectory.h"
#include "runtime/predict/Tiling.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/Evaluate.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

namespace dlc::rt {

static int64_t elementsOf(std::span<const int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

namespace {

class Predictor {
public:
  Predictor(Session &session, const Dataset &dataset);

  std::vector<Prediction> run();

private:
  struct Row {
    int64_t sample;
    Tile tile;
  };

  std::vector<int64_t> extentsOf(const std::vector<Sample> &inputs) const;
  void prepareOutputs(std::span<const int64_t> extents);
  void add(int64_t sample, const std::vector<Sample> &inputs, const Tile &tile);
  void flush();
  void restoreUnits();

  Session &session;
  const Dataset &dataset;
  const artifact::Program &program;
  Tiling tiling;
  Destinations inputMemory;
  std::vector<std::vector<int64_t>> tileShapes; // of outputs
  std::vector<Prediction> predictions;
  std::vector<Row> rows; // of the batch being filled
  int64_t steps = 0;
};

} // namespace

static std::vector<int64_t> tileExtents(const Artifact &artifact) {
  std::vector<InputSpec> specs = inputSpecs(artifact, "predict");
  if (specs.empty() || specs.front().shape.size() < 3)
    return {};
  return {specs.front().shape.begin() + 2, specs.front().shape.end()};
}

Predictor::Predictor(Session &session, const Dataset &dataset)
    : session(session), dataset(dataset), program(requireProgram(session.artifact(), "predict")),
      tiling(program.tiling(), tileExtents(session.artifact())),
      inputMemory(destinationsOf(session, "predict", dataset.inputs())) {
  if (program.results())
    for (const artifact::Result *result : *program.results())
      if (result->kind() == artifact::ResultKind::Output) {
        std::vector<int64_t> shape =
            readShape(*session.artifact()->buffers()->Get(result->buffers()->Get(0))->type());
        tileShapes.emplace_back(shape.begin() + 1, shape.end());
        predictions.push_back({result->name()->str(), {}, {}, dataset.sampleNames(), ""});
      }
  if (predictions.empty())
    throw Error(ErrorCode::Artifact, "the model names no output, so there is nothing to predict");
}

/// Spatial extents of a sample's inputs.
std::vector<int64_t> Predictor::extentsOf(const std::vector<Sample> &inputs) const {
  std::vector<int64_t> extents;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<int64_t> &shape = inputs[i].shape;
    std::vector<int64_t> own(shape.begin() + (shape.empty() ? 0 : 1), shape.end());
    if (i > 0 && program.tiling() && own != extents)
      throw Error(ErrorCode::BadInput, "images of " + dataset.inputs()[i].name + " have " +
                                           shapeText(own) + " pixels, those of " +
                                           dataset.inputs()[0].name + " " + shapeText(extents));
    extents = i ? extents : own;
  }
  return extents;
}

void Predictor::prepareOutputs(std::span<const int64_t> extents) {
  for (size_t i = 0; i < predictions.size(); ++i) {
    predictions[i].shape = tiling.outputShape(tileShapes[i], extents);
    predictions[i].values.resize(
        static_cast<size_t>(dataset.samples() * elementsOf(predictions[i].shape)));
  }
}

void Predictor::add(int64_t sample, const std::vector<Sample> &inputs, const Tile &tile) {
  auto row = static_cast<int64_t>(rows.size());
  rows.push_back({sample, tile});
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputMemory[i])
      inputMemory[i]->writer.writeRow(row, tiling.cut(inputs[i], tile), inputMemory[i]->slots[0]);
  if (rows.size() == program.batch())
    flush();
}

/// Rows that the last batch lacks keep what the batch before left there; nothing reads their
/// outputs.
void Predictor::flush() {
  setEvaluationScalars(session, 0, steps, program.batch(), static_cast<int64_t>(rows.size()));
  session.run("predict", 0, static_cast<uint64_t>(steps++));
  for (size_t i = 0; i < predictions.size(); ++i) {
    Prediction &prediction = predictions[i];
    std::vector<float> batch = session.output("predict", prediction.name);
    auto tileSize = static_cast<size_t>(elementsOf(tileShapes[i]));
    auto imageSize = static_cast<size_t>(elementsOf(prediction.shape));
    for (size_t row = 0; row < rows.size(); ++row)
      tiling.paste(std::span<const float>(batch).subspan(row * tileSize, tileSize), tileShapes[i],
                   rows[row].tile,
                   std::span(prediction.values)
                       .subspan(static_cast<size_t>(rows[row].sample) * imageSize, imageSize),
                   prediction.shape);
  }
  rows.clear();
}

void Predictor::restoreUnits() {
  for (Prediction &prediction : predictions) {
    auto channels = static_cast<size_t>(prediction.shape.empty() ? 1 : prediction.shape[0]);
    auto each = static_cast<size_t>(elementsOf(prediction.shape));
    for (int64_t sample = 0; sample < dataset.samples(); ++sample)
      dataset.restoreUnits(
          prediction.name, sample, channels,
          std::span(prediction.values).subspan(static_cast<size_t>(sample) * each, each));
  }
}

std::vector<Prediction> Predictor::run() {
  std::vector<Tile> tiles;
  for (int64_t sample = 0; sample < dataset.samples(); ++sample) {
    std::vector<Sample> inputs = dataset.sample(sample, {});
    if (sample == 0) {
      std::vector<int64_t> extents = extentsOf(inputs);
      tiles = tiling.tiles(extents);
      prepareOutputs(extents);
    }
    for (const Tile &tile : tiles)
      add(sample, inputs, tile);
  }
  if (!rows.empty())
    flush();
  restoreUnits();
  dataset.requireWhole();
  return std::move(predictions);
}

/// What the data has to look like: images that can be tiled may have any size.
static std::vector<InputSpec> acceptedInputs(const Artifact &artifact) {
  const artifact::Program &program = requireProgram(artifact, "predict");
  std::vector<InputSpec> specs = inputSpecs(artifact, "predict");
  for (InputSpec &spec : specs) {
    if (program.tiling())
      std::fill(spec.shape.begin() + 2, spec.shape.end(), anyExtent);
    else if (program.untiled() && program.untiled()->size() && spec.shape.size() > 2)
      spec.sizeReason = "images of other sizes would need tiles, which the model rules out: " +
                        program.untiled()->str();
  }
  return specs;
}

namespace {

/// What is predicted together: samples of one size.
struct DataPart {
  DataPaths paths;
  std::string image; // stem of the one image, empty: everything
};

class PredictRun {
public:
  PredictRun(Session &session, const PredictOptions &options, Console &console)
      : session(session), options(options), console(console),
        inputs(acceptedInputs(session.artifact())), statistics(loadWeights(session, options.init)) {
  }

  std::vector<DataPart> parts() const;
  void predict(const DataPart &part);

private:
  std::map<std::string, std::map<std::string, std::string>> directories() const;

  Session &session;
  const PredictOptions &options;
  Console &console;
  std::vector<InputSpec> inputs;
  Dataset::Statistics statistics;
  std::set<std::string> noticed;
};

/// The images of each directory that is given.
std::map<std::string, std::map<std::string, std::string>> PredictRun::directories() const {
  const Artifact &artifact = session.artifact();
  std::vector<std::string> sources = sourceNames(dataPipeline(artifact), inputNames(artifact));
  std::map<std::string, std::map<std::string, std::string>> images;
  for (const auto &[input, path] : options.data) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored))
      images[input] = imageFiles(path, imageRule(input, sources, options.data));
  }
  return images;
}

/// One, or one per image where a directory's images, tiled anyway, have several sizes.
std::vector<DataPart> PredictRun::parts() const {
  std::vector<DataPart> parts = {{options.data, ""}};
  if (!requireProgram(session.artifact(), "predict").tiling())
    return parts;
  auto images = directories();
  if (std::none_of(images.begin(), images.end(),
                   [](const auto &each) { return imagesDiffer(each.second); }))
    return parts;
  parts.clear();
  for (const auto &[stem, ignored] : images[options.data.front().first]) {
    DataPart &part = parts.emplace_back(DataPart{{}, stem});
    for (const auto &[input, directory] : options.data) {
      if (!images[input].contains(stem))
        throw Error(ErrorCode::BadInput, "'" + directory + "' has no image named " + stem +
                                             ", as '" + options.data.front().second + "' has");
      part.paths.emplace_back(input, images[input][stem]);
    }
  }
  return parts;
}

void PredictRun::predict(const DataPart &part) {
  const Artifact &artifact = session.artifact();
  Dataset dataset(dataPipeline(artifact), inputs, inputNames(artifact), part.paths,
                  /*isPrediction=*/true);
  dataset.setStatistics(statistics);
  for (const std::string &notice : dataset.notices())
    if (part.image.empty() || noticed.insert(notice).second)
      console.line("note: " + notice);
  for (Prediction &prediction : Predictor(session, dataset).run()) {
    prediction.image = part.image;
    if (prediction.stems.empty() && dataset.samples() == 1 && part.image.empty())
      prediction.stems = {std::filesystem::path(part.paths.front().second).stem().string()};
    console.line(writePrediction(
        prediction, dataset.samples(),
        options.formats.empty() ? defaultFormats(dataset.format(), prediction) : options.formats,
        options.directory));
  }
}

} // namespace

void predict(Session &session, const PredictOptions &options, Console &console) {
  PredictRun run(session, options, console);
  std::vector<DataPart> parts = run.parts();
  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  if (error)
    throw Error(ErrorCode::Runtime,
                "cannot write the directory '" + options.directory + "': " + error.message());
  for (const DataPart &part : parts)
    run.predict(part);
}

} // namespace dlc::rt
