// The pixels that do not count are scalars of a run, so that the rows of a batch are tiles that lie
// alike: inside of an image, at its left edge, ... Tiles wait until there are enough of a kind.
#include "runtime/train/TiledEvaluation.h"

#include "runtime/data/Tiling.h"
#include "runtime/train/CollectiveError.h"
#include "runtime/train/Evaluate.h"
#include "runtime/train/Signature.h"

#include <algorithm>
#include <map>

namespace dlc::rt {

static const artifact::Program &evalProgram(const Artifact &artifact) {
  return requireProgram(artifact, "eval");
}

std::vector<InputSpec> evaluationInputs(const Artifact &artifact) {
  std::vector<InputSpec> inputs = inputSpecs(artifact, "eval");
  const artifact::Tiling *tiling = evalProgram(artifact).tiling();
  for (InputSpec &input : inputs)
    if (tiling && !input.isOfNormalize)
      std::fill(input.shape.end() - tiling->overlap()->size(), input.shape.end(), anyExtent);
    else
      input.sizeReason = "evaluation of this model takes samples of the one size that it was "
                         "compiled for: compile it for theirs with --set; weights of a network "
                         "without dense layers fit any size";
  return inputs;
}

namespace {

class TiledEvaluation {
public:
  TiledEvaluation(Session &session, const Dataset &dataset)
      : session(session), dataset(dataset), program(evalProgram(session.artifact())),
        extents(programExtents(session.artifact())), tiling(program.tiling(), extents),
        memory(destinationsOf(session, "eval", dataset.inputs())), totals(program) {}

  void add(int64_t sample);
  Totals finish();

private:
  /// Pixels that do not count at either end of each dimension, and the values of each input.
  using Skips = std::vector<std::pair<int64_t, int64_t>>;
  using Row = std::vector<std::vector<float>>;

  static std::vector<int64_t> programExtents(const Artifact &artifact) {
    return spatialExtents(inputSpecs(artifact, "eval").front().shape,
                          *evalProgram(artifact).tiling());
  }
  Skips skipsOf(const Tile &tile) const;
  void run(const Skips &skips, const std::vector<Row> &rows);

  Session &session;
  const Dataset &dataset;
  const artifact::Program &program;
  std::vector<int64_t> extents; // of a tile
  Tiling tiling;
  Destinations memory;
  std::map<Skips, std::vector<Row>> waiting;
  int64_t steps = 0;
  Totals totals;
};

TiledEvaluation::Skips TiledEvaluation::skipsOf(const Tile &tile) const {
  Skips skips;
  for (size_t dim = 0; dim < tile.size(); ++dim)
    skips.emplace_back(tile[dim].keepBegin - tile[dim].start,
                       tile[dim].start + extents[dim] - tile[dim].keepEnd);
  return skips;
}

void TiledEvaluation::add(int64_t sample) {
  std::vector<Sample> inputs = dataset.sample(sample, {});
  auto spatial = [&](const Sample &input) {
    return spatialExtents(input.shape, *program.tiling());
  };
  auto isImage = [&](size_t i) { return !dataset.inputs()[i].isOfNormalize; };
  for (size_t i = 1; i < inputs.size(); ++i)
    if (isImage(i) && spatial(inputs[i]) != spatial(inputs[0]))
      throw Error(ErrorCode::BadInput,
                  "sample " + std::to_string(sample) + " of " + dataset.inputs()[i].name + " has " +
                      shapeText(spatial(inputs[i])) + " pixels, that of " +
                      dataset.inputs()[0].name + " " + shapeText(spatial(inputs[0])));
  for (const Tile &tile : tiling.tiles(spatial(inputs[0]))) {
    Skips skips = skipsOf(tile);
    std::vector<Row> &rows = waiting[skips];
    Row &row = rows.emplace_back();
    for (size_t i = 0; i < inputs.size(); ++i)
      row.push_back(isImage(i) ? tiling.cut(inputs[i], tile) : inputs[i].values);
    if (rows.size() == program.batch()) {
      run(skips, rows);
      rows.clear();
    }
  }
}

void TiledEvaluation::run(const Skips &skips, const std::vector<Row> &rows) {
  for (size_t row = 0; row < rows.size(); ++row)
    for (size_t input = 0; input < rows[row].size(); ++input)
      if (memory[input])
        memory[input]->writer.writeRow(static_cast<int64_t>(row), rows[row][input],
                                       memory[input]->slots[0]);
  setEvaluationScalars(session, 0, 0, program.batch(), static_cast<int64_t>(rows.size()));
  for (size_t dim = 0; dim < skips.size(); ++dim) {
    std::string number = std::to_string(dim);
    session.setScalar("skip_low_" + number, static_cast<double>(skips[dim].first));
    session.setScalar("skip_high_" + number, static_cast<double>(skips[dim].second));
  }
  session.run("eval", 0, static_cast<uint64_t>(steps++));
  totals.add(session.results("eval", 0));
}

Totals TiledEvaluation::finish() {
  for (const auto &[skips, rows] : waiting)
    if (!rows.empty())
      run(skips, rows);
  dataset.requireWhole();
  return totals;
}

} // namespace

/// Throws CollectiveError alike on all ranks.
static Totals evaluateTiles(Session &session, const Dataset &dataset,
                            const std::vector<int64_t> &samples) {
  ControlPlane &control = session.control();
  Totals totals(evalProgram(session.artifact()));
  EvaluationFailure failure;
  try {
    TiledEvaluation evaluation(session, dataset);
    auto rank = static_cast<size_t>(control.rank()), ranks = static_cast<size_t>(control.size());
    for (size_t i = rank; i < samples.size(); i += ranks)
      evaluation.add(samples[i]);
    totals = evaluation.finish();
  } catch (const std::exception &) {
    failure = EvaluationFailure::current();
  }
  return sumOverRanks(control, std::move(totals), failure);
}

static bool takesAnySize(const Dataset &dataset) {
  return std::ranges::any_of(dataset.inputs(), [](const InputSpec &input) {
    return std::ranges::find(input.shape, anyExtent) != input.shape.end();
  });
}

bool isEvaluatedInTiles(const Artifact &artifact, const Dataset &dataset) {
  return takesAnySize(dataset) && !dataset.haveShapes(inputSpecs(artifact, "eval"));
}

Totals evaluateAnySize(Session &session, const Dataset &dataset,
                       const std::vector<int64_t> &samples, uint64_t seed) {
  return isEvaluatedInTiles(session.artifact(), dataset)
             ? evaluateTiles(session, dataset, samples)
             : evaluate(session, "eval", dataset, samples, seed);
}

} // namespace dlc::rt
