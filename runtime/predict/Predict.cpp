// Samples become tiles, tiles rows of batches, whatever sample they are from; each row's outputs
// are put into place in the outputs of its sample. Ranks take samples side by side, or images that
// differ in size in turn; what a row gives does not depend on the rows beside it, so that any
// number of ranks gives the same bits.
#include "runtime/predict/Predict.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/data/Tiling.h"
#include "runtime/data/readers/ImageDirectory.h"
#include "runtime/predict/Symmetry.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/Evaluate.h"
#include "runtime/train/Replicas.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>

namespace dlc::rt {

static int64_t elementsOf(std::span<const int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

namespace {

/// Samples of a data set.
struct SampleRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// Predicts a range of samples, turned by a symmetry.
class Predictor {
public:
  Predictor(Session &session, const Dataset &dataset, SampleRange range, Symmetry symmetry);

  /// Outputs hold the samples of the range, in the symmetry's place.
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

  Session &session;
  const Dataset &dataset;
  const SampleRange range;
  const Symmetry symmetry;
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
  if (const artifact::Tiling *tiling = requireProgram(artifact, "predict").tiling())
    return spatialExtents(specs.front().shape, *tiling);
  if (specs.empty() || specs.front().shape.size() < 3)
    return {};
  return {specs.front().shape.begin() + 2, specs.front().shape.end()};
}

Predictor::Predictor(Session &session, const Dataset &dataset, SampleRange range, Symmetry symmetry)
    : session(session), dataset(dataset), range(range), symmetry(symmetry),
      program(requireProgram(session.artifact(), "predict")),
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
    if (program.tiling())
      own = spatialExtents(shape, *program.tiling());
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
        static_cast<size_t>(range.size() * elementsOf(predictions[i].shape)));
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
/// outputs. Programs that draw random numbers have no tiles, so that a row is a sample.
void Predictor::flush() {
  setEvaluationScalars(session, 0, rows.front().sample, program.batch(),
                       static_cast<int64_t>(rows.size()));
  session.run("predict", 0, static_cast<uint64_t>(steps++));
  for (size_t i = 0; i < predictions.size(); ++i) {
    Prediction &prediction = predictions[i];
    std::vector<float> batch = session.output("predict", prediction.name);
    auto tileSize = static_cast<size_t>(elementsOf(tileShapes[i]));
    auto imageSize = static_cast<size_t>(elementsOf(prediction.shape));
    for (size_t row = 0; row < rows.size(); ++row)
      tiling.paste(
          std::span<const float>(batch).subspan(row * tileSize, tileSize), tileShapes[i],
          rows[row].tile,
          std::span(prediction.values)
              .subspan(static_cast<size_t>(rows[row].sample - range.begin) * imageSize, imageSize),
          prediction.shape);
  }
  rows.clear();
}

std::vector<Prediction> Predictor::run() {
  std::vector<Tile> tiles;
  size_t leastRank = program.tiling() ? 2 : 3; // images that can be tiled may lack channels
  for (int64_t sample = range.begin; sample < range.end; ++sample) {
    std::vector<Sample> inputs = dataset.sample(sample, {});
    for (Sample &input : inputs)
      if (input.shape.size() >= leastRank) { // channels, ..., Y, X
        input.values = turned(input.values, input.shape, symmetry);
        input.shape = turnedShape(input.shape, symmetry);
      }
    if (sample == range.begin) {
      std::vector<int64_t> extents = extentsOf(inputs);
      tiles = tiling.tiles(extents);
      prepareOutputs(extents);
    }
    for (const Tile &tile : tiles)
      add(sample, inputs, tile);
  }
  if (!rows.empty())
    flush();
  dataset.requireWhole();
  return std::move(predictions);
}

static void restoreUnits(const Dataset &dataset, SampleRange range, Prediction &prediction) {
  auto channels = static_cast<size_t>(prediction.shape.empty() ? 1 : prediction.shape[0]);
  auto each = static_cast<size_t>(elementsOf(prediction.shape));
  for (int64_t sample = range.begin; sample < range.end; ++sample)
    dataset.restoreUnits(prediction.name, sample, channels,
                         std::span(prediction.values)
                             .subspan(static_cast<size_t>(sample - range.begin) * each, each));
}

//===- Turns ----------------------------------------------------------------------------------===//

/// Outputs of tiles are images, perhaps of another resolution; others are if they have the size.
static bool hasPlaneOf(std::span<const int64_t> extents, std::span<const int64_t> shape,
                       bool isTiled) {
  if (shape.size() < extents.size())
    return false;
  if (isTiled)
    return shape.rbegin()[0] * extents.rbegin()[1] == shape.rbegin()[1] * extents.rbegin()[0];
  return std::equal(extents.rbegin(), extents.rend(), shape.rbegin());
}

/// Throws Error(BadInput) for a model whose inputs or outputs cannot be turned.
static void requireTurns(const Artifact &artifact) {
  const artifact::Program &program = requireProgram(artifact, "predict");
  std::vector<int64_t> extents = tileExtents(artifact);
  auto refuse = [](const std::string &why) {
    return Error(ErrorCode::BadInput,
                 "--tta flips images and turns them by 90 degrees, " + why + "; leave --tta out");
  };
  if (extents.size() < 2)
    throw refuse("which the model's inputs, without two spatial axes, are not for");
  if (!program.tiling() && extents.back() != extents[extents.size() - 2])
    throw refuse("but the model takes images of " + shapeText(extents) + " alone");
  for (const artifact::Result *result : *program.results()) {
    if (result->kind() != artifact::ResultKind::Output)
      continue;
    const artifact::TensorType &type = *artifact->buffers()->Get(result->buffers()->Get(0))->type();
    if (!isFloating(type.dtype()))
      throw refuse("and averages what comes of it, but the output '" + result->name()->str() +
                   "' has whole numbers");
    std::vector<int64_t> shape = readShape(type);
    shape.erase(shape.begin());
    if (!hasPlaneOf(extents, shape, program.tiling()))
      throw refuse("but output " + result->name()->str() + " (" + shapeText(shape) +
                   ") lacks the spatial axes of the input (" + shapeText(extents) +
                   ") and cannot be turned back");
  }
}

/// Means over all symmetries, each turned back.
static std::vector<Prediction> predictTurns(Session &session, const Dataset &dataset,
                                            SampleRange range) {
  std::vector<Prediction> means;
  for (int i = 0; i < Symmetry::count; ++i) {
    Symmetry symmetry = Symmetry::at(i);
    std::vector<Prediction> outputs = Predictor(session, dataset, range, symmetry).run();
    if (i == 0) {
      means = std::move(outputs);
      continue;
    }
    for (size_t output = 0; output < means.size() && range.size() > 0; ++output) {
      Prediction &mean = means[output];
      std::vector<int64_t> shape = mean.shape;
      shape.insert(shape.begin(), range.size());
      addTurnedBack(outputs[output].values, shape, symmetry, mean.values);
    }
  }
  for (Prediction &mean : means)
    for (float &value : mean.values)
      value *= 1.0f / Symmetry::count;
  return means;
}

//===- A run ----------------------------------------------------------------------------------===//

/// What the data has to look like: images that can be tiled may have any size.
static std::vector<InputSpec> acceptedInputs(const Artifact &artifact) {
  const artifact::Program &program = requireProgram(artifact, "predict");
  std::vector<InputSpec> specs = inputSpecs(artifact, "predict");
  for (InputSpec &spec : specs) {
    if (const artifact::Tiling *tiling = program.tiling())
      std::fill(spec.shape.end() - tiling->overlap()->size(), spec.shape.end(), anyExtent);
    else if (program.untiled() && program.untiled()->size() && spec.shape.size() > 2)
      spec.sizeReason = "images of other sizes would need tiles, which the model rules out: " +
                        program.untiled()->str() +
                        "; compile it for images of that size, as by --set predict.size=N";
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
      : session(session), control(session.control()), options(options), console(console),
        inputs(acceptedInputs(session.artifact())),
        statistics(loadWeights(session, options.init).statistics) {
    requireEqualReplicas(session, "before the prediction",
                         "check that '" + options.init + "' is the same file on all hosts");
    if (options.averagesTurns)
      requireTurns(session.artifact());
  }

  void run();

private:
  std::map<std::string, std::map<std::string, std::string>> directories() const;
  std::vector<DataPart> parts() const;
  void requireUnread(const std::string &output) const;
  void createDirectory() const;
  Dataset open(const DataPart &part);
  std::vector<Prediction> predict(const Dataset &dataset, SampleRange range) const;
  std::string write(Prediction &prediction, const Dataset &dataset, const DataPart &part) const;
  void gather(Prediction &prediction, int64_t samples) const;
  void runSamples(const DataPart &part);
  void runImages(const std::vector<DataPart> &parts);

  Session &session;
  ControlPlane &control;
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

/// Files of an output are called by its name; none that is read must be among them.
void PredictRun::requireUnread(const std::string &output) const {
  namespace fs = std::filesystem;
  std::error_code ignored;
  constexpr std::string_view written[] = {".npy", ".png", ".tif"};
  auto refuseIfCalledSo = [&](const fs::path &file) {
    std::string stem = file.stem().string();
    bool isCalledSo = (stem == output || stem.starts_with(output + "-")) &&
                      std::ranges::find(written, file.extension().string()) != std::end(written);
    if (isCalledSo && fs::equivalent(file.has_parent_path() ? file.parent_path() : ".",
                                     options.directory, ignored))
      throw Error(ErrorCode::BadInput, "output '" + output + "' would overwrite '" + file.string() +
                                           "', which is read: choose another -o");
  };
  for (const auto &[name, path] : options.data) {
    refuseIfCalledSo(path);
    for (const fs::directory_entry &entry : fs::directory_iterator(path, ignored))
      refuseIfCalledSo(entry.path());
  }
}

void PredictRun::createDirectory() const {
  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  if (error)
    throw Error(ErrorCode::Runtime,
                "cannot write the directory '" + options.directory + "': " + error.message());
}

Dataset PredictRun::open(const DataPart &part) {
  const Artifact &artifact = session.artifact();
  Dataset dataset(dataPipeline(artifact), inputs, inputNames(artifact), part.paths,
                  /*isPrediction=*/true);
  dataset.setStatistics(statistics);
  for (const std::string &notice : dataset.notices())
    if (part.image.empty() || noticed.insert(notice).second)
      console.line("note: " + notice);
  return dataset;
}

std::vector<Prediction> PredictRun::predict(const Dataset &dataset, SampleRange range) const {
  std::vector<Prediction> predictions = options.averagesTurns
                                            ? predictTurns(session, dataset, range)
                                            : Predictor(session, dataset, range, {}).run();
  for (Prediction &prediction : predictions)
    restoreUnits(dataset, range, prediction);
  return predictions;
}

/// Returns the line that tells of it.
std::string PredictRun::write(Prediction &prediction, const Dataset &dataset,
                              const DataPart &part) const {
  requireUnread(prediction.name);
  prediction.image = part.image;
  if (prediction.stems.empty() && dataset.samples() == 1 && part.image.empty())
    prediction.stems = {std::filesystem::path(part.paths.front().second).stem().string()};
  return writePrediction(prediction, dataset.samples(),
                         options.formats.empty() ? defaultFormats(dataset.format(), prediction)
                                                 : options.formats,
                         options.directory);
}

/// The samples of a rank; rank 0 has some whenever there are any.
static SampleRange shareOf(int64_t samples, int rank, int ranks) {
  auto end = [&](int64_t before) { return (samples * before + ranks - 1) / ranks; };
  return {end(rank), end(rank + 1)};
}

/// Brings all samples to rank 0, one at a time.
void PredictRun::gather(Prediction &prediction, int64_t samples) const {
  if (control.size() == 1)
    return;
  auto each = static_cast<size_t>(elementsOf(prediction.shape)); // where there are samples
  if (control.rank() == 0)
    prediction.values.resize(static_cast<size_t>(samples) * each);
  for (int rank = 1; rank < control.size(); ++rank) {
    SampleRange range = shareOf(samples, rank, control.size());
    for (int64_t sample = range.begin; sample < range.end; ++sample) {
      std::span<const float> mine;
      if (control.rank() == rank)
        mine = std::span(prediction.values)
                   .subspan(static_cast<size_t>(sample - range.begin) * each, each);
      std::vector<std::byte> bytes = std::move(control.allGather(
          std::as_bytes(mine), "gathering of predictions")[static_cast<size_t>(rank)]);
      if (control.rank() == 0)
        std::memcpy(prediction.values.data() + static_cast<size_t>(sample) * each, bytes.data(),
                    bytes.size());
    }
  }
}

/// Samples of one size, in files that rank 0 writes.
void PredictRun::runSamples(const DataPart &part) {
  Dataset dataset = open(part);
  SampleRange mine = shareOf(dataset.samples(), control.rank(), control.size());
  for (Prediction &prediction : predict(dataset, mine)) {
    gather(prediction, dataset.samples());
    if (control.rank() == 0)
      console.line(write(prediction, dataset, part));
  }
}

/// Images that differ in size, with files of their own: each is written by the rank that predicts
/// it. Ranks wait for each other after each one, so that none is late by more than an image.
void PredictRun::runImages(const std::vector<DataPart> &parts) {
  auto ranks = static_cast<size_t>(control.size()), rank = static_cast<size_t>(control.rank());
  for (size_t first = 0; first < parts.size(); first += ranks) {
    std::string lines;
    if (first + rank < parts.size()) {
      const DataPart &part = parts[first + rank];
      Dataset dataset = open(part);
      for (Prediction &prediction : predict(dataset, {0, dataset.samples()}))
        lines += (lines.empty() ? "" : "\n") + write(prediction, dataset, part);
    }
    for (const std::vector<std::byte> &text :
         control.allGather(std::as_bytes(std::span(lines)), "prediction of images"))
      if (!text.empty())
        console.line({reinterpret_cast<const char *>(text.data()), text.size()});
  }
}

void PredictRun::run() {
  std::vector<DataPart> all = parts();
  if (control.rank() == 0 || all.size() > 1)
    createDirectory();
  if (all.size() == 1)
    runSamples(all.front());
  else
    runImages(all);
}

} // namespace

void predict(Session &session, const PredictOptions &options, Console &console) {
  PredictRun(session, options, console).run();
}

} // namespace dlc::rt
