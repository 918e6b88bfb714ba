#include "runtime/data/steps/Normalization.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace dlc::rt {

static void checkChannels(size_t statistics, size_t channels) {
  if (statistics != 1 && statistics != channels)
    throw Error(ErrorCode::BadInput, "data step normalize has statistics for " +
                                         std::to_string(statistics) + " channels, the data has " +
                                         std::to_string(channels));
}

static std::vector<float> repeated(const std::vector<float> &entries, size_t channels) {
  checkChannels(entries.size(), channels);
  return entries.size() == 1 ? std::vector(channels, entries[0]) : entries;
}

std::pair<std::vector<float>, std::vector<float>> Normalization::perChannel(size_t channels) const {
  std::vector<float> scale = repeated(divisor, channels);
  for (float &entry : scale)
    entry = 1.0f / entry;
  return {repeated(shift, channels), scale};
}

/// Zeros beside an array are values, too; those that a later step adds are not.
static bool canScale(const View &view) {
  return !view.axes.empty() && view.isFull() && !view.scaling;
}

void Normalization::apply(Sample &sample) const {
  size_t channels = sample.shape.empty() ? 1 : static_cast<size_t>(sample.shape[0]);
  auto [shifts, scales] = perChannel(channels);
  if (sample.unread && canScale(*sample.unread)) {
    sample.unread->scale({std::move(shifts), std::move(scales)});
    return;
  }
  sample.settle();
  size_t each = sample.values.size() / channels;
  for (size_t channel = 0; channel < channels; ++channel)
    for (float &value : std::span(sample.values).subspan(channel * each, each))
      value = (value - shifts[channel]) * scales[channel];
}

void Normalization::undo(std::span<float> values, size_t channels) const {
  std::vector<float> shifts = repeated(shift, channels), divisors = repeated(divisor, channels);
  size_t each = values.size() / channels;
  for (size_t channel = 0; channel < channels; ++channel)
    for (float &value : values.subspan(channel * each, each))
      value = value * divisors[channel] + shifts[channel];
}

Normalization NormalizePerImage::of(const Sample &sample) const {
  double sum = 0, squares = 0;
  for (float value : sample.values)
    sum += value;
  double mean = sum / static_cast<double>(sample.values.size());
  for (float value : sample.values)
    squares += (value - mean) * (value - mean);
  double deviation = std::sqrt(squares / static_cast<double>(sample.values.size()));
  return {{static_cast<float>(mean)}, {static_cast<float>(deviation) + normalizeEpsilon}};
}

/// Reorders the values.
static float percentile(std::vector<float> &values, double percent) {
  double at = percent / 100 * static_cast<double>(values.size() - 1);
  auto low = static_cast<size_t>(at);
  auto first = values.begin() + static_cast<ptrdiff_t>(low);
  std::nth_element(values.begin(), first, values.end());
  if (low + 1 == values.size())
    return *first;
  float next = *std::min_element(first + 1, values.end());
  return *first + static_cast<float>(at - static_cast<double>(low)) * (next - *first);
}

Normalization NormalizePercentile::of(const Sample &sample) const {
  std::vector<float> values = sample.values;
  float from = percentile(values, low), to = percentile(values, high);
  return {{from}, {to - from + normalizeEpsilon}};
}

Normalization NormalizeChannels::of(const Sample &) const {
  Normalization result{mean, deviation};
  for (float &divisor : result.divisor)
    divisor += epsilon;
  return result;
}

} // namespace dlc::rt
