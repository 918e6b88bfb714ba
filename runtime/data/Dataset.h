// The data block of a model bound to files: sample i as the values of the model's inputs.
//
// Sources are read, chains of steps applied in order, and what carries the name of an input at the
// end feeds it. Augmentation happens in training alone; what is drawn depends on (seed, epoch,
// position in the epoch) only.
// Values are checked whenever a sample is read: numbers are finite, and what losses and metrics
// look at is in their range. Immutable after statistics are set; sample() may be called from any
// thread.
#pragma once

#include "runtime/data/Batches.h"
#include "runtime/data/Chains.h"
#include "runtime/data/InputSpec.h"
#include "runtime/data/NormalizationMemo.h"
#include "runtime/data/Source.h"
#include "runtime/data/SourceNames.h"
#include "runtime/data/VolumeCut.h"

#include <map>
#include <optional>
#include <set>

namespace dlc::rt {

/// Whether and how a pass draws random numbers.
struct Augmentation {
  bool enabled = false;
  uint64_t seed = 0;
  uint32_t epoch = 0;
};

/// Which sample, and where it stands in its pass. In a data block with patches, training numbers
/// the volumes, evaluation the cells of their grids.
struct Position {
  Position(int64_t index) : Position(index, index) {} // NOLINT: in the order of the files
  Position(int64_t index, int64_t inEpoch) : index(index), inEpoch(inEpoch) {}
  int64_t index, inEpoch;
};

class Dataset {
public:
  /// Statistics of normalize(dataset) by tensor name: `data.<source>.mean`, `data.<source>.std`.
  using Statistics = std::map<std::string, std::vector<float>>;
  /// Names of classes by source, in the order of their numbers.
  using Classes = std::map<std::string, std::vector<std::string>>;

  /// Reads what `inputs` need. Throws Error(BadInput) for names that are unknown, inputs without
  /// data, shapes, types and labels that do not fit. `knownInputs` are all inputs of the model,
  /// `cache` holds the images of directories.
  Dataset(const artifact::DataPipelineT &pipeline, std::vector<InputSpec> inputs,
          const std::vector<std::string> &knownInputs, const DataPaths &paths,
          bool isPrediction = false, std::shared_ptr<ImageCache> cache = nullptr);

  /// What the files hold: images, or volumes to take patches from.
  int64_t samples() const { return count; }
  /// What training and validation go through, with a share kept apart for the latter: of all
  /// samples, or of each volume. From then on evaluation sees the latter only.
  Split split(double share, uint64_t seed);
  /// What an evaluation goes through, each sample once.
  std::vector<int64_t> evaluationSamples() const;
  const std::vector<InputSpec> &inputs() const { return specs; }
  /// True if all samples come to the inputs in these shapes.
  bool haveShapes(const std::vector<InputSpec> &wanted) const;
  /// The files that were read, and the stems of the samples' files, if they have one each.
  FileFormat format() const;
  /// Folders that are numbered as classes, by source.
  Classes classes() const;
  std::vector<std::string> sampleNames() const;
  /// From now on, samples are views of held arrays (View::isHeld) where a pass of the kind only
  /// moves a source's elements, replaces some, adds zeros, and normalizes them once at most, as the
  /// first sample shows. Returns the bytes of each such array. Statistics must be there.
  std::vector<uint64_t> holdArrays(const Augmentation &augmentation);
  /// One line each: what was read otherwise than stored.
  const std::vector<std::string> &notices() const { return remarks; }

  /// Measures the statistics of normalize(dataset) over these samples.
  void measureStatistics(const std::vector<int64_t> &samples);
  /// Takes over measured ones; throws if one is missing.
  void setStatistics(const Statistics &statistics);
  const Statistics &statistics() const { return measured; }

  /// Values of the inputs, in the order of inputs(). Throws Error(BadInput) for values that the
  /// inputs do not take; the message names file, sample and value.
  std::vector<Sample> sample(const Position &at, const Augmentation &augmentation) const;
  /// The same, but values that no step has needed as numbers are left unread.
  std::vector<Sample> unreadSample(const Position &at, const Augmentation &augmentation) const;

  /// Undoes the normalize of a source in an output predicted for a sample, [channels, ...], if the
  /// data block says so.
  void restoreUnits(const std::string &output, int64_t index, size_t channels,
                    std::span<float> values) const;

  /// Throws Error(BadInput) if a file was cut since: samples read before may be wrong.
  void requireWhole() const;

private:
  void bindSources(const artifact::DataPipelineT &pipeline, const DataPaths &paths);
  void openSource(size_t value, const std::string &path, const SourceUse &use);
  void pairSources();
  Extents shapeBehindSteps(const InputSpec &spec, size_t value, const Extents &shape) const;
  void checkSteps(Use use) const;
  void checkShape(const InputSpec &spec, size_t value, const Source &source, int64_t sample) const;
  void checkInput(const InputSpec &spec, size_t value, const Source &source) const;
  std::string placeBehindSteps(const InputSpec &spec, int64_t index) const;
  bool keepsValues(size_t source) const;
  bool isCategorical(size_t source) const;
  bool takesClasses(size_t source) const;
  bool lacksChannels(const InputSpec &spec) const;
  Use useIn(const Augmentation &augmentation) const;
  std::string placeOf(const Chain &chain, int64_t index) const;
  std::vector<const InputSpec *> inputsFrom(size_t source) const;
  std::vector<size_t> sourceValues() const;
  void findPatches();
  bool isCut(size_t source) const;
  void checkVolumes() const;
  std::pair<int64_t, Box> patchAt(const Position &at, const Augmentation &augmentation) const;
  std::vector<Box> slabsOf(int64_t index) const;
  Draw drawOf(const Position &at, const Augmentation &augmentation, uint32_t stream) const;
  Normalization normalizationAt(const Chain &chain, size_t step, size_t member, int64_t index,
                                const Sample &sample) const;
  void normalize(const Chain &chain, size_t step, int64_t index,
                 std::vector<Sample> &members) const;
  void addNormalizations(std::vector<Sample> &inputs) const;
  Sample readSource(size_t value, int64_t index, const Box *part) const;
  void runChains(std::vector<Sample> &values, const Position &at, const Augmentation &augmentation,
                 const DataStep *stopBefore) const;
  Sample sampleBefore(const DataStep &step, size_t value, int64_t index, const Box *part) const;
  std::pair<std::vector<float>, std::vector<float>>
  channelStatistics(const DataStep &step, size_t value, const std::vector<int64_t> &samples) const;

  std::vector<InputSpec> specs;
  bool isPrediction;
  std::shared_ptr<ImageCache> cache;
  std::vector<std::string> read; // names of sources
  Chains chains;
  std::vector<bool> categorical;    // by value
  std::map<size_t, Source> sources; // by value
  int64_t count = 0;
  /// The patches of the data block, if this is no prediction: the random stream of their places,
  /// the sources that are cut, and where.
  struct Cutting {
    uint32_t stream;
    std::vector<size_t> values;
    VolumeCut volumes;
  };
  std::optional<Cutting> cutting;
  Statistics measured;
  std::unique_ptr<NormalizationMemo> normalizations = std::make_unique<NormalizationMemo>();
  std::set<std::string> held; // sources whose arrays are, see holdArrays
  std::vector<std::string> remarks;
};

} // namespace dlc::rt
