// The part of a data set that normalises, and undoes it.
#include "runtime/artifact/Error.h"
#include "runtime/data/Dataset.h"

#include <algorithm>
#include <cmath>

namespace dlc::rt {

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
  std::vector<Sample> values(names.size());
  values[value] = readSource(value, index, part);
  runChains(values, index, {}, &step);
  values[value].settle();
  return std::move(values[value]);
}

/// The first normalize that a source goes through, and its chain; null if there is none.
std::pair<const Dataset::Chain *, const DataStep *> Dataset::normalizeOf(size_t source) const {
  for (const Chain &chain : chains)
    if (std::find(chain.inputs.begin(), chain.inputs.end(), source) != chain.inputs.end())
      for (const DataStep &step : chain.steps)
        if (isNormalize(step))
          return {&chain, &step};
  return {};
}

void Dataset::restoreUnits(const std::string &output, int64_t index, size_t channels,
                           std::span<float> values) const {
  auto entry = restored.find(output);
  if (entry == restored.end())
    return;
  const std::string &name = entry->second;
  auto source = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  auto [chain, step] = normalizeOf(source);
  if (!step || !sources.contains(source))
    throw Error(ErrorCode::Artifact, "denormalize of output " + output + " undoes normalize of " +
                                         name + ", which " +
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
  for (Chain &chain : chains)
    for (DataStep &step : chain.steps)
      if (auto *normalize = std::get_if<NormalizeChannels>(&step);
          normalize && normalize->measured && sources.contains(chain.inputs[0])) {
        std::tie(normalize->mean, normalize->deviation) =
            channelStatistics(step, chain.inputs[0], samples);
        measured["data." + names[chain.inputs[0]] + ".mean"] = normalize->mean;
        measured["data." + names[chain.inputs[0]] + ".std"] = normalize->deviation;
      }
}

void Dataset::setStatistics(const Statistics &statistics) {
  for (Chain &chain : chains)
    for (DataStep &step : chain.steps)
      if (auto *normalize = std::get_if<NormalizeChannels>(&step);
          normalize && normalize->measured && sources.contains(chain.inputs[0])) {
        std::string base = "data." + names[chain.inputs[0]];
        auto mean = statistics.find(base + ".mean"), deviation = statistics.find(base + ".std");
        if (mean == statistics.end() || deviation == statistics.end())
          throw Error(ErrorCode::BadInput, "the weights lack the tensors " + base + ".mean and " +
                                               base + ".std, which normalize(dataset) needs");
        measured[mean->first] = normalize->mean = mean->second;
        measured[deviation->first] = normalize->deviation = deviation->second;
      }
}

} // namespace dlc::rt
