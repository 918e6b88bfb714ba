// Names of the data block become numbers of values once; a sample is a vector of values, of which a
// chain moves its inputs to its outputs position by position, or one input to all outputs. Values
// that this program does not need stay empty and pass through chains untouched. Patches are cut
// where sources are read, so that nothing else of a volume is.
#include "runtime/data/Dataset.h"

#include "runtime/artifact/Error.h"
#include "runtime/core/Philox.h"
#include "runtime/data/ArrayRows.h"
#include "runtime/data/SourcePairs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

namespace dlc::rt {

static bool contains(const std::vector<std::string> &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Dataset::Dataset(const artifact::DataPipelineT &pipeline, std::vector<InputSpec> inputs,
                 const std::vector<std::string> &knownInputs, const DataPaths &paths,
                 bool isPrediction, std::shared_ptr<ImageCache> cache)
    : specs(std::move(inputs)), isPrediction(isPrediction),
      cache(cache ? std::move(cache) : std::make_shared<ImageCache>()),
      read(sourceNames(pipeline, knownInputs)), chains(pipeline, specs, knownInputs) {
  bindSources(pipeline, paths);
  for (size_t value = 0; value < chains.values(); ++value)
    categorical.push_back(isCategorical(value));
  findPatches();
  checkSteps(useIn({}));
}

/// A sample shows which inputs are not computed, nor read as numbers, to check their range. What is
/// held is what was counted, whatever other samples show.
std::vector<uint64_t> Dataset::holdArrays(const Augmentation &augmentation) {
  for (const auto &[value, source] : sources)
    held.insert(source.name());
  std::set<std::string> inputs;
  try {
    std::vector<Sample> first = unreadSample(0, augmentation);
    for (size_t i = 0; i < specs.size(); ++i)
      if (isOfHeldArray(first[i]) && !first[i].unread->isEmpty() &&
          (specs[i].stored || specs[i].dtype == artifact::DType::F32))
        inputs.insert(specs[i].name);
  } catch (const Error &) {
    inputs.clear(); // the error is told when the sample's turn has come
  }
  held.clear();
  std::vector<uint64_t> sizes;
  for (const auto &[value, source] : sources)
    if (std::ranges::any_of(inputsFrom(value),
                            [&](const InputSpec *spec) { return inputs.contains(spec->name); })) {
      held.insert(source.name());
      for (uint64_t bytes : source.heldArrays())
        sizes.push_back(bytes);
    }
  return sizes;
}

std::vector<size_t> Dataset::sourceValues() const {
  std::vector<size_t> values;
  for (size_t value = 0; value < chains.values(); ++value)
    if (contains(read, chains.nameOf(value)))
      values.push_back(value);
  return values;
}

/// True if inputs take the source's numbers as the file holds them.
bool Dataset::keepsValues(size_t source) const {
  std::vector<bool> reached = chains.reachedFrom(source);
  reached[source] = true;
  auto keeps = [&](const DataStep &step) { return rt::keepsValues(step, isCategorical(source)); };
  return std::all_of(chains.begin(), chains.end(), [&](const Chain &chain) {
    bool concerned = std::any_of(chain.inputs.begin(), chain.inputs.end(),
                                 [&](size_t value) { return reached[value]; });
    return !concerned || std::all_of(chain.steps.begin(), chain.steps.end(), keeps);
  });
}

std::vector<const InputSpec *> Dataset::inputsFrom(size_t source) const {
  std::vector<bool> reached = chains.reachedFrom(source);
  std::vector<const InputSpec *> inputs;
  for (const InputSpec &spec : specs)
    for (size_t value = 0; value < chains.values(); ++value)
      if (reached[value] && chains.nameOf(value) == spec.name)
        inputs.push_back(&spec);
  return inputs;
}

/// True if inputs take the source as classes, a mask or weights, which no step may blend.
bool Dataset::isCategorical(size_t source) const {
  std::vector<bool> reached = chains.reachedFrom(source);
  bool isEncoded = std::any_of(chains.begin(), chains.end(), [&](const Chain &chain) {
    return std::any_of(chain.inputs.begin(), chain.inputs.end(),
                       [&](size_t value) { return reached[value]; }) &&
           std::any_of(chain.steps.begin(), chain.steps.end(),
                       [](const DataStep &step) { return std::holds_alternative<OneHot>(step); });
  });
  std::vector<const InputSpec *> fed = inputsFrom(source);
  return isEncoded || (!fed.empty() && std::all_of(fed.begin(), fed.end(), [](const InputSpec *s) {
           return s->dtype != artifact::DType::F32 || s->range;
         }));
}

/// What samples are for in a pass.
Use Dataset::useIn(const Augmentation &augmentation) const {
  if (!isPrediction)
    return augmentation.enabled ? Use::Training : Use::Evaluation;
  bool anySize = std::any_of(specs.begin(), specs.end(), [](const InputSpec &spec) {
    return std::find(spec.shape.begin(), spec.shape.end(), anyExtent) != spec.shape.end();
  });
  return anySize ? Use::PredictionInTiles : Use::Prediction;
}

void Dataset::pairSources() {
  const Source *first = nullptr;
  for (const auto &[value, source] : sources) {
    if (first) {
      requirePair(*first, source);
      bool havePairs = !first->sampleNames().empty() && !source.sampleNames().empty() &&
                       first->classes().empty() && source.classes().empty();
      if (havePairs && !isPrediction)
        remarks.push_back(noteOnPairs(*first, source));
    }
    if (!source.classes().empty())
      remarks.push_back(noteOnClasses(source));
    first = first ? first : &source;
  }
  count = first ? first->samples() : 0;
}

/// A map of pixels: its axes behind the batch are the spatial ones of another input.
bool Dataset::lacksChannels(const InputSpec &spec) const {
  auto own = std::span(spec.shape).subspan(std::min<size_t>(1, spec.shape.size()));
  return !own.empty() && std::any_of(specs.begin(), specs.end(), [&](const InputSpec &other) {
    return other.shape.size() == spec.shape.size() + 1 &&
           std::ranges::equal(own, std::span(other.shape).subspan(2));
  });
}

void Dataset::bindSources(const artifact::DataPipelineT &pipeline, const DataPaths &paths) {
  std::vector<std::string> images; // sources that no class comes from
  for (size_t value : sourceValues())
    if (!takesClasses(value))
      images.push_back(chains.nameOf(value));
  DataPaths imagePaths = paths;
  std::erase_if(imagePaths, [&](const auto &path) { return !contains(images, path.first); });
  for (const auto &[name, path] : paths) {
    if (!contains(read, name))
      throw Error(ErrorCode::BadInput, "--data " + name + "=" + path +
                                           ": the model reads no data of this name; it reads " +
                                           joined(read));
    size_t value = chains.valueOf(name);
    if (sources.contains(value))
      throw Error(ErrorCode::BadInput, "data for " + name + " is given twice");
    if (inputsFrom(value).empty()) {
      remarks.push_back(name + " is not needed here and is not read");
      continue;
    }
    const InputSpec &fed = *inputsFrom(value).front();
    SourceUse use{"", fed.shape.size(), takesClasses(value), {}, lacksChannels(fed)};
    for (const auto &source : pipeline.sources)
      if (source->name == name)
        use.axes = source->axes;
    if (!use.takesClasses)
      use.images = imageRule(name, images, imagePaths);
    openSource(value, path, use);
  }
  for (size_t value : sourceValues())
    if (!sources.contains(value) && !inputsFrom(value).empty())
      throw Error(ErrorCode::BadInput, "there is no data for " + chains.nameOf(value) +
                                           "; add --data " + chains.nameOf(value) + "=PATH");
  pairSources();
}

/// True for a source of one number a sample that no step may blend.
bool Dataset::takesClasses(size_t source) const {
  std::vector<const InputSpec *> fed = inputsFrom(source);
  return !fed.empty() && fed.front()->shape.size() <= 2 && isCategorical(source);
}

void Dataset::openSource(size_t value, const std::string &path, const SourceUse &use) {
  std::vector<const InputSpec *> fed = inputsFrom(value);
  Source source(chains.nameOf(value), path, use, cache);
  bool forPrediction = std::any_of(fed.begin(), fed.end(),
                                   [](const InputSpec *spec) { return spec->neededByPredict; });
  bool ignores255 = std::any_of(fed.begin(), fed.end(), [](const InputSpec *spec) {
    return spec->range && spec->range->hasOther(255);
  });
  // A step that computes knows the units that it is for.
  if (!forPrediction && !ignores255 && keepsValues(value) && source.readAsBinaryMask())
    remarks.push_back(chains.nameOf(value) + " holds 0 and 255 alone and is read as 0 and 1 ('" +
                      path + "')");
  for (const InputSpec *spec : fed)
    checkInput(*spec, value, source);
  sources.emplace(value, std::move(source));
}

Dataset::Classes Dataset::classes() const {
  Classes classes;
  for (const auto &[value, source] : sources)
    if (!source.classes().empty())
      classes[source.name()] = source.classes();
  return classes;
}

/// The shape in which a source's sample of a given shape comes to an input.
Extents Dataset::shapeBehindSteps(const InputSpec &spec, size_t value, const Extents &shape) const {
  Chains::Shapes shapes(chains.values());
  shapes[value] = shape;
  return *chains.shapesBehindSteps(std::move(shapes), useIn({}))[chains.valueOf(spec.name)];
}

/// Throws if a step cannot take the samples of some file, or those of several files together.
void Dataset::checkSteps(Use use) const {
  for (const auto &[value, source] : sources)
    for (int64_t sample : source.firstSamples()) {
      Chains::Shapes shapes(chains.values());
      for (const auto &[other, beside] : sources)
        shapes[other] = beside.sampleShape(sample);
      try {
        chains.shapesBehindSteps(std::move(shapes), use);
      } catch (const Error &error) {
        throw Error(error.code, source.place(sample) + ": " + error.what());
      }
    }
}

void Dataset::checkShape(const InputSpec &spec, size_t value, const Source &source,
                         int64_t sample) const {
  Extents wanted(spec.shape.begin() + (spec.shape.empty() ? 0 : 1), spec.shape.end());
  const Extents &stored = source.sampleShape(sample);
  const ArrayHeader &header = source.fileOf(sample);
  std::string file = "'" + header.path + "' (" + shapeText(header.shape) + ")";
  Extents got;
  try {
    got = shapeBehindSteps(spec, value, stored);
  } catch (const Error &error) {
    throw Error(error.code, file + ": " + error.what());
  }
  if (takesShape(spec, got))
    return;
  std::string advice;
  if (std::optional<int64_t> other = source.otherShape(sample))
    advice = "; '" + source.fileOf(*other).path + "' gives " +
             shapeText(source.sampleShape(*other)) +
             (source.sampleShape(*other)[0] != stored[0]
                  ? ": save all images as grey, or all as RGB"
                  : ": resize_pad(size) in the data block makes images of several sizes alike");
  else if (std::string axes = source.axesByMetadata(sample); !axes.empty())
    advice = "; its metadata name the axes " + axes +
             ", unless the source line has others: " + "source " + source.name() +
             " : axes = \"...\"";
  else if (!spec.sizeReason.empty() && got.size() == wanted.size() && got[0] == wanted[0])
    advice = "; " + spec.sizeReason;
  throw Error(ErrorCode::BadInput,
              file + " gives samples of shape " + shapeText(stored) +
                  (got == stored ? "" : ", after the data steps " + shapeText(got)) +
                  ", but the model's input " + spec.name + " takes " + shapeText(wanted) + advice);
}

bool Dataset::haveShapes(const std::vector<InputSpec> &wanted) const {
  for (const auto &[value, source] : sources)
    for (const InputSpec *spec : inputsFrom(value)) {
      auto exact = std::ranges::find(wanted, spec->name, &InputSpec::name);
      for (int64_t sample : source.firstSamples())
        if (!takesShape(*exact, shapeBehindSteps(*spec, value, source.sampleShape(sample))))
          return false;
    }
  return true;
}

void Dataset::checkInput(const InputSpec &spec, size_t value, const Source &source) const {
  for (int64_t sample : source.firstSamples())
    checkShape(spec, value, source, sample);
  requireElements(spec, source);
  if (spec.dtype != artifact::DType::F32 && !isInteger(source.type()))
    throw Error(ErrorCode::BadInput,
                "'" + source.path() + "' holds " + std::string(nameOf(source.type())) +
                    " elements, but the model's input " + spec.name + " takes integers");
  // Files that are quick to read are checked before the first step; samples are checked again when
  // they are loaded.
  if (spec.range && isInteger(source.type()) && keepsValues(value))
    if (std::optional<Source::Outlier> wrong = source.outlier(*spec.range))
      refuseValue(spec, source.place(wrong->sample), wrong->value,
                  wrong->besideMask ? " beside 0 and 255" : "");
}

/// "'labels.npy': sample 3 after the data steps", of the source that an input is from.
std::string Dataset::placeBehindSteps(const InputSpec &spec, int64_t index) const {
  for (const auto &[value, source] : sources)
    for (const InputSpec *fed : inputsFrom(value))
      if (fed->name == spec.name)
        return source.place(index) + (keepsValues(value) ? "" : " after the data steps");
  return spec.name;
}

FileFormat Dataset::format() const {
  return sources.empty() ? FileFormat::Npy : sources.begin()->second.format();
}

std::vector<std::string> Dataset::sampleNames() const {
  for (const auto &[value, source] : sources)
    if (!source.sampleNames().empty())
      return source.sampleNames();
  return {};
}

//===- Patches --------------------------------------------------------------------------------===//

void Dataset::findPatches() {
  for (const Chain &chain : chains)
    for (size_t i = 0; i < chain.steps.size() && !isPrediction; ++i)
      if (const auto *patches = std::get_if<Patches>(&chain.steps[i])) {
        std::vector<size_t> cut;
        for (const auto &[value, source] : sources) {
          std::vector<bool> reached = chains.reachedFrom(value);
          if (source.sampleShape(0).size() > 1 &&
              std::ranges::any_of(chain.inputs, [&](size_t input) { return reached[input]; }))
            cut.push_back(value);
        }
        if (cut.empty())
          continue;
        const Source &first = sources.at(cut.front());
        std::vector<Extents> volumes;
        for (int64_t index = 0; index < count; ++index) {
          std::span<const int64_t> extents = spatialOf(first.sampleShape(index));
          volumes.emplace_back(extents.begin(), extents.end());
        }
        Extents size = sizeFor(chain.steps[i], patches->size, first.sampleShape(0));
        cutting = Cutting{chain.streams[i], std::move(cut), {std::move(size), std::move(volumes)}};
        checkVolumes();
        return;
      }
}

bool Dataset::isCut(size_t source) const {
  return cutting &&
         std::find(cutting->values.begin(), cutting->values.end(), source) != cutting->values.end();
}

/// All inputs of a patch are cut at one place.
void Dataset::checkVolumes() const {
  for (int64_t index = 0; index < count; ++index)
    for (size_t value : cutting->values) {
      const Source &source = sources.at(value);
      std::span<const int64_t> extents = spatialOf(source.sampleShape(index));
      const Extents &first = cutting->volumes.extents(index);
      if (!std::equal(extents.begin(), extents.end(), first.begin(), first.end()))
        throw Error(ErrorCode::BadInput,
                    source.place(index) + " is " + shapeText(extents) + ", but that of '" +
                        sources.at(cutting->values.front()).path() + "' is " + shapeText(first) +
                        ": patches are cut alike from volumes of one size");
    }
}

/// The volume, and its part, of a position.
std::pair<int64_t, Box> Dataset::patchAt(const Position &at,
                                         const Augmentation &augmentation) const {
  if (useIn(augmentation) == Use::Training)
    return {at.index,
            cutting->volumes.drawPatch(at.index, drawOf(at, augmentation, cutting->stream))};
  return cutting->volumes.cell(at.index);
}

/// A part for training, in pieces that are quick to read.
std::vector<Box> Dataset::slabsOf(int64_t index) const {
  Box box = cutting->volumes.trainingPart(index);
  std::vector<Box> slabs;
  for (int64_t plane = 0; plane < box.size[0]; ++plane) {
    Box &slab = slabs.emplace_back(box);
    slab.first[0] += plane;
    slab.size[0] = 1;
  }
  return slabs;
}

static std::vector<int64_t> countedTo(int64_t count) {
  std::vector<int64_t> samples(static_cast<size_t>(count));
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

Split Dataset::split(double share, uint64_t seed) {
  checkSteps(Use::Training);
  if (!cutting)
    return share > 0 ? splitSamples(count, share, seed) : Split{countedTo(count), {}};
  const Source &first = sources.at(cutting->values.front());
  auto place = [&](int64_t volume) { return first.place(volume); };
  Split parts{cutting->volumes.divide(share, place, remarks), {}};
  if (share > 0)
    parts.validation = evaluationSamples();
  return parts;
}

std::vector<int64_t> Dataset::evaluationSamples() const {
  return countedTo(cutting ? cutting->volumes.cells() : count);
}

//===- Samples --------------------------------------------------------------------------------===//

Draw Dataset::drawOf(const Position &at, const Augmentation &augmentation, uint32_t stream) const {
  auto position = static_cast<uint64_t>(at.inEpoch);
  return Draw(philox(augmentation.seed,
                     {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                      stream, augmentation.epoch}));
}

/// `part`: null for the whole.
Sample Dataset::readSource(size_t value, int64_t index, const Box *part) const {
  Sample sample;
  const Source &source = sources.at(value);
  source.read(index, part, sample);
  if (sample.unread && !held.contains(source.name()))
    sample.unread->isHeld = false;
  sample.isCategorical = categorical[value];
  return sample;
}

/// "'masks.npy': sample 3: ", of the first file that the chain reads.
std::string Dataset::placeOf(const Chain &chain, int64_t index) const {
  for (const auto &[value, source] : sources) {
    std::vector<bool> reached = chains.reachedFrom(value);
    for (size_t input : chain.inputs)
      if (reached[input])
        return source.place(index) + ": ";
  }
  return "";
}

void Dataset::runChains(std::vector<Sample> &values, const Position &at,
                        const Augmentation &augmentation, const DataStep *stopBefore) const {
  Use use = useIn(augmentation);
  for (const Chain &chain : chains) {
    std::vector<Sample> members;
    members.reserve(chain.inputs.size());
    for (size_t value : chain.inputs) {
      bool isReplaced = std::ranges::count(chain.inputs, value) == 1 &&
                        std::ranges::find(chain.outputs, value) != chain.outputs.end();
      members.push_back(isReplaced ? std::exchange(values[value], {}) : values[value]);
    }
    bool stops = false;
    for (size_t i = 0; i < chain.steps.size() && !stops; ++i) {
      stops = &chain.steps[i] == stopBefore;
      try {
        if (!stops && isNormalize(chain.steps[i]))
          normalize(chain, i, at.index, members);
        else if (!stops)
          applyStep(chain.steps[i], members, drawOf(at, augmentation, chain.streams[i]), use);
      } catch (const Error &error) {
        throw Error(error.code, placeOf(chain, at.index) + error.what());
      }
    }
    // A step that is measured may be behind one that makes several of one.
    const std::vector<size_t> &to = stops ? chain.inputs : chain.outputs;
    for (size_t i = 0; i < to.size(); ++i)
      values[to[i]] = std::move(members[i]);
    if (stops)
      return;
  }
}

std::vector<Sample> Dataset::sample(const Position &at, const Augmentation &augmentation) const {
  std::vector<Sample> inputs = unreadSample(at, augmentation);
  for (Sample &input : inputs)
    input.settle();
  return inputs;
}

std::vector<Sample> Dataset::unreadSample(const Position &at,
                                          const Augmentation &augmentation) const {
  int64_t index = at.index; // in the files
  std::optional<Box> patch;
  if (cutting) {
    auto [volume, box] = patchAt(at, augmentation);
    index = volume;
    patch = box;
  }
  std::vector<Sample> values(chains.values());
  for (const auto &[value, source] : sources)
    values[value] = readSource(value, index, isCut(value) ? &*patch : nullptr);
  runChains(values, {index, at.inEpoch}, augmentation, nullptr);
  std::vector<Sample> inputs;
  for (const InputSpec &spec : specs) {
    Sample &input = inputs.emplace_back(std::exchange(values[chains.valueOf(spec.name)], {}));
    if (spec.isOfNormalize)
      continue;
    requireValues(spec, input, [&] { return placeBehindSteps(spec, index); });
    dropMissingAxis(spec, input.shape);
  }
  addNormalizations(inputs);
  return inputs;
}

/// What the program computes of inputs that come as their files hold them.
void Dataset::addNormalizations(std::vector<Sample> &inputs) const {
  for (size_t i = 0; i < specs.size(); ++i)
    if (const InputSpec &spec = specs[i]; spec.shift) {
      const std::optional<Normalization> &left = inputs[i].normalization;
      int64_t channels = specs[*spec.shift].shape[1];
      if (!left)
        throw Error(ErrorCode::Artifact, "nothing normalises input " + spec.name);
      auto [shift, scale] = left->perChannel(static_cast<size_t>(channels));
      inputs[*spec.shift] = {{channels}, std::move(shift)};
      inputs[*spec.scale] = {{channels}, std::move(scale)};
    }
}

void Dataset::requireWhole() const {
  for (const auto &[value, source] : sources)
    source.requireWhole();
}

//===- Normalisation --------------------------------------------------------------------------===//

/// What normalize does to a member of the chain.
Normalization Dataset::normalizationAt(const Chain &chain, size_t step, size_t member,
                                       int64_t index, const Sample &sample) const {
  const DataStep &normalize = chain.steps[step];
  if (!measuresSample(normalize) || !sample.unread)
    return normalizationOf(normalize, sample);
  auto measure = [&] {
    Sample numbers = sample;
    numbers.settle();
    return normalizationOf(normalize, numbers);
  };
  if (!sample.unread->isWhole)
    return measure();
  return normalizations->of({chain.number, member}, index, samples(), measure);
}

/// Applies it, or says of the samples what it would make of them.
void Dataset::normalize(const Chain &chain, size_t step, int64_t index,
                        std::vector<Sample> &members) const {
  for (size_t member = 0; member < members.size(); ++member)
    if (Sample &sample = members[member]; !sample.isAbsent()) {
      Normalization found = normalizationAt(chain, step, member, index, sample);
      if (chain.isLeft[step])
        sample.normalization = std::move(found);
      else
        found.apply(sample);
    }
}

/// A source's sample, or a part of it, as the step meets it. Steps treat the members of a chain one
/// by one, so that nothing else is read.
Sample Dataset::sampleBefore(const DataStep &step, size_t value, int64_t index,
                             const Box *part) const {
  std::vector<Sample> values(chains.values());
  values[value] = readSource(value, index, part);
  runChains(values, index, {}, &step);
  values[value].settle();
  return std::move(values[value]);
}

void Dataset::restoreUnits(const std::string &output, int64_t index, size_t channels,
                           std::span<float> values) const {
  const std::string *name = chains.unitsOf(output);
  if (!name)
    return;
  size_t source = chains.valueOf(*name);
  auto [chain, step] = chains.normalizeOf(source);
  if (!step || !sources.contains(source))
    throw Error(ErrorCode::Artifact, "denormalize of output " + output + " undoes normalize of " +
                                         *name + ", which " +
                                         (step ? "predictions do not read" : "has none"));
  normalizationOf(*step, sampleBefore(*step, source, index, nullptr)).undo(values, channels);
}

std::pair<std::vector<float>, std::vector<float>>
Dataset::channelStatistics(const DataStep &step, size_t value,
                           const std::vector<int64_t> &samples) const {
  std::vector<double> sums, squares;
  double count = 0;
  auto add = [&](int64_t index, const Box *part) {
    Sample sample = sampleBefore(step, value, index, part);
    size_t channels = sample.shape.empty() ? 1 : static_cast<size_t>(sample.shape[0]);
    sums.resize(channels);
    squares.resize(channels);
    size_t perChannel = sample.values.size() / channels;
    for (size_t i = 0; i < sample.values.size(); ++i) {
      double number = sample.values[i];
      sums[i / perChannel] += number;
      squares[i / perChannel] += number * number;
    }
    count += static_cast<double>(perChannel);
  };
  if (!isCut(value))
    for (int64_t index : samples)
      add(index, nullptr);
  for (int64_t volume = 0; isCut(value) && volume < this->count; ++volume)
    for (const Box &slab : slabsOf(volume))
      add(volume, &slab);
  std::vector<float> means, deviations;
  for (size_t channel = 0; channel < sums.size(); ++channel) {
    double mean = sums[channel] / count;
    means.push_back(static_cast<float>(mean));
    deviations.push_back(
        static_cast<float>(std::sqrt(std::max(0.0, squares[channel] / count - mean * mean))));
  }
  return {means, deviations};
}

void Dataset::measureStatistics(const std::vector<int64_t> &samples) {
  chains.visitMeasured([&](NormalizeChannels &normalize, const DataStep &step, size_t source) {
    if (!sources.contains(source))
      return;
    std::tie(normalize.mean, normalize.deviation) = channelStatistics(step, source, samples);
    const std::string &name = chains.nameOf(source);
    measured["data." + name + ".mean"] = normalize.mean;
    measured["data." + name + ".std"] = normalize.deviation;
  });
}

void Dataset::setStatistics(const Statistics &statistics) {
  chains.visitMeasured([&](NormalizeChannels &normalize, const DataStep &, size_t source) {
    if (!sources.contains(source))
      return;
    std::string base = "data." + chains.nameOf(source);
    auto mean = statistics.find(base + ".mean"), deviation = statistics.find(base + ".std");
    if (mean == statistics.end() || deviation == statistics.end())
      throw Error(ErrorCode::BadInput, "the weights lack the tensors " + base + ".mean and " +
                                           base + ".std, which normalize(dataset) needs");
    measured[mean->first] = normalize.mean = mean->second;
    measured[deviation->first] = normalize.deviation = deviation->second;
  });
}

} // namespace dlc::rt
