#include "runtime/data/Steps.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/Array.h"

#include <algorithm>
#include <cmath>

namespace dlc::rt {

/// Added to measured deviations, so that constant images stay finite.
static constexpr float normalizeEpsilon = 1e-6f;

static std::vector<float> numbersOf(const artifact::ArgumentT &argument) {
  std::vector<float> numbers(argument.floats.begin(), argument.floats.end());
  if (numbers.empty())
    numbers.assign(argument.ints.begin(), argument.ints.end());
  return numbers;
}

static DataStep makeNormalize(const artifact::CallT &call) {
  NormalizeChannels given;
  std::string mode = "dataset";
  for (const auto &argument : call.arguments) {
    if (argument->name == "mean")
      given.mean = numbersOf(*argument);
    else if (argument->name == "std")
      given.deviation = numbersOf(*argument);
    else
      mode = argument->text;
  }
  if (!given.mean.empty() && !given.deviation.empty())
    return given;
  if (mode == "per_image")
    return NormalizePerImage{};
  if (mode == "dataset" && given.mean.empty() && given.deviation.empty())
    return NormalizeChannels{true, {}, {}, normalizeEpsilon};
  throw Error(ErrorCode::Artifact, "data step normalize wants per_image, dataset, or mean and std");
}

DataStep makeStep(const artifact::CallT &call) {
  if (call.name == "normalize")
    return makeNormalize(call);
  if (call.name == "flip")
    return Flip{call.arguments.empty() ? "" : call.arguments[0]->text};
  if (call.name == "rotate90")
    return Rotate90{};
  throw Error(ErrorCode::Artifact, "data step '" + call.name +
                                       "' is not known to this dlc-run; known are normalize, flip, "
                                       "rotate90");
}

bool isAugmentation(const DataStep &step) {
  return std::holds_alternative<Flip>(step) || std::holds_alternative<Rotate90>(step);
}

bool keepsValues(const DataStep &step) {
  return std::holds_alternative<Flip>(step) || std::holds_alternative<Rotate90>(step);
}

namespace {

struct StepApplier {
  std::span<Sample *const> members;
  const std::array<uint32_t, 4> &draw;

  void operator()(const NormalizePerImage &) const {
    for (Sample *member : members) {
      double sum = 0, squares = 0;
      for (float value : member->values)
        sum += value;
      double mean = sum / static_cast<double>(member->values.size());
      for (float value : member->values)
        squares += (value - mean) * (value - mean);
      double deviation = std::sqrt(squares / static_cast<double>(member->values.size()));
      auto shift = static_cast<float>(mean);
      float scale = 1.0f / (static_cast<float>(deviation) + normalizeEpsilon);
      for (float &value : member->values)
        value = (value - shift) * scale;
    }
  }

  void operator()(const NormalizeChannels &step) const {
    for (Sample *member : members) {
      size_t channels = member->shape.empty() ? 1 : static_cast<size_t>(member->shape[0]);
      checkChannels(step.mean.size(), channels);
      checkChannels(step.deviation.size(), channels);
      size_t perChannel = member->values.size() / channels;
      for (size_t channel = 0; channel < channels; ++channel) {
        float shift = step.mean[step.mean.size() == 1 ? 0 : channel];
        float scale =
            1.0f / (step.deviation[step.deviation.size() == 1 ? 0 : channel] + step.epsilon);
        for (float &value : std::span(member->values).subspan(channel * perChannel, perChannel))
          value = (value - shift) * scale;
      }
    }
  }

  void operator()(const Flip &step) const {
    for (Sample *member : members)
      for (size_t rank = member->shape.size(), dim = 1; dim < rank; ++dim) {
        bool isMeant =
            step.axes.empty() ||
            (rank - dim <= 3 && step.axes.find("XYZ"[rank - dim - 1]) != std::string::npos);
        if (isMeant && (draw[0] >> dim & 1))
          mirror(*member, dim);
      }
  }

  void operator()(const Rotate90 &) const {
    for (Sample *member : members) {
      size_t rank = member->shape.size();
      if (rank < 3 || member->shape[rank - 1] != member->shape[rank - 2])
        throw Error(ErrorCode::BadInput,
                    "data step rotate90 wants square images, got samples of shape " +
                        shapeText(member->shape));
      for (uint32_t turn = 0; turn < draw[0] >> 30; ++turn)
        quarterTurn(*member);
    }
  }

private:
  static void checkChannels(size_t statistics, size_t channels) {
    if (statistics != 1 && statistics != channels)
      throw Error(ErrorCode::BadInput, "data step normalize has statistics for " +
                                           std::to_string(statistics) + " channels, the data has " +
                                           std::to_string(channels));
  }

  static void mirror(Sample &sample, size_t dim) {
    size_t inner = 1;
    for (size_t i = dim + 1; i < sample.shape.size(); ++i)
      inner *= static_cast<size_t>(sample.shape[i]);
    auto extent = static_cast<size_t>(sample.shape[dim]);
    for (size_t block = 0; block < sample.values.size(); block += extent * inner)
      for (size_t low = 0, high = extent - 1; low < high; ++low, --high)
        std::swap_ranges(sample.values.begin() + static_cast<ptrdiff_t>(block + low * inner),
                         sample.values.begin() + static_cast<ptrdiff_t>(block + (low + 1) * inner),
                         sample.values.begin() + static_cast<ptrdiff_t>(block + high * inner));
  }

  /// Counterclockwise, as numpy.rot90.
  static void quarterTurn(Sample &sample) {
    auto side = static_cast<size_t>(sample.shape.back());
    std::vector<float> turned(sample.values.size());
    for (size_t plane = 0; plane < turned.size(); plane += side * side)
      for (size_t row = 0; row < side; ++row)
        for (size_t column = 0; column < side; ++column)
          turned[plane + row * side + column] =
              sample.values[plane + column * side + (side - 1 - row)];
    sample.values = std::move(turned);
  }
};

} // namespace

void applyStep(const DataStep &step, std::span<Sample *const> members,
               const std::array<uint32_t, 4> &draw) {
  std::visit(StepApplier{members, draw}, step);
}

} // namespace dlc::rt
