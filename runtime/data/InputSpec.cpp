#include "runtime/data/InputSpec.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlc::rt {

/// Of one sample.
static std::span<const int64_t> shapeOf(const InputSpec &spec) {
  return std::span(spec.shape).subspan(spec.shape.empty() ? 0 : 1);
}

bool takesShape(const InputSpec &spec, std::span<const int64_t> sample) {
  std::span<const int64_t> wanted = shapeOf(spec);
  if (sample.size() == wanted.size() + 1 && sample[0] == 1)
    sample = sample.subspan(1);
  return std::ranges::equal(wanted, sample, [](int64_t want, int64_t extent) {
    return want == anyExtent || want == extent;
  });
}

void dropMissingAxis(const InputSpec &spec, std::vector<int64_t> &sample) {
  if (sample.size() == shapeOf(spec).size() + 1)
    sample.erase(sample.begin());
}

/// Values that an input's type and the losses take.
static ValueRange takenBy(const InputSpec &spec) {
  constexpr double most = std::numeric_limits<float>::max(), exact = 1 << 24; // samples are f32
  ValueRange type = spec.dtype == artifact::DType::F32    ? ValueRange{-most, most}
                    : spec.dtype == artifact::DType::I8   ? ValueRange{-128, 127}
                    : spec.dtype == artifact::DType::U8   ? ValueRange{0, 255}
                    : spec.dtype == artifact::DType::Bool ? ValueRange{0, 1}
                                                          : ValueRange{-exact, exact};
  return spec.range ? ValueRange{std::max(type.low, spec.range->low),
                                 std::min(type.high, spec.range->high), spec.range->others}
                    : type;
}

void refuseValue(const InputSpec &spec, const std::string &place, double value,
                 const std::string &beside) {
  ValueRange range = takenBy(spec);
  bool isOpen = range.high >= std::numeric_limits<float>::max();
  std::string taken = isOpen && range.low < 0 ? "finite numbers"
                      : isOpen ? numberText(range.low) + " or more"
                               : numberText(range.low) + ".." + numberText(range.high);
  for (double other : range.others)
    taken += " and " + numberText(other);
  std::string advice;
  if (spec.range && spec.dtype != artifact::DType::F32)
    advice = ": number the classes from 0, compile the model for more of them, or have every "
             "loss and metric on them ignore this one (ignore = CLASS)";
  else if (spec.range && range.low == 0 && range.high == 1)
    advice =
        ": save it as 0 and 1, or with values in between (files of 0 and 255 alone are read as "
        "0 and 1 where prediction does not need the input)";
  throw Error(ErrorCode::BadInput, place + " has the value " + numberText(value) + beside +
                                       ", but " + (spec.range ? "the loss or metric on " : "") +
                                       "input " + spec.name + " takes " + taken + advice);
}

/// Shares that files hold in 16 bits are off by less.
static constexpr double sumTolerance = 1e-3;

static void requireSumsOfOne(const InputSpec &spec, std::span<const float> values,
                             const std::function<std::string()> &place) {
  auto classes = static_cast<size_t>(spec.shape.at(1));
  size_t places = values.size() / classes;
  for (size_t at = 0; at < places; ++at) {
    double sum = 0;
    for (size_t k = 0; k < classes; ++k)
      sum += values[k * places + at];
    if (std::abs(sum - 1) > sumTolerance)
      throw Error(ErrorCode::BadInput,
                  place() + " has shares of the classes that sum to " + numberText(sum) +
                      ", but the loss on input " + spec.name +
                      " takes such that sum to 1: divide them by their sum, or pad images before "
                      "one_hot");
  }
}

static void requireFinal(const InputSpec &spec, std::span<const float> values,
                         const std::function<std::string()> &place) {
  ValueRange range = takenBy(spec);
  auto low = static_cast<float>(range.low), high = static_cast<float>(range.high);
  bool good = true;
  for (float value : values)
    good &= value >= low && value <= high;
  if (spec.sumsToOne && good)
    requireSumsOfOne(spec, values, place);
  if (good)
    return;
  auto wrong = std::ranges::find_if(values, [&](float value) {
    return !(value >= low && value <= high) && !range.hasOther(value);
  });
  if (wrong != values.end())
    refuseValue(spec, place(), *wrong);
}

/// Numbers that elements of a view's array can be.
static ValueRange heldByArray(const View &view) {
  constexpr double most = std::numeric_limits<double>::max();
  if (view.isEmpty())
    return {0, 0};
  if (view.isMask)
    return {0, 1};
  if (!isInteger(view.type))
    return {-most, most};
  return visitType(view.type, [](auto zero) {
    using Limits = std::numeric_limits<decltype(zero)>;
    return ValueRange{static_cast<double>(Limits::lowest()), static_cast<double>(Limits::max())};
  });
}

/// Likewise of those that are scaled; NaN if statistics are none, so that values are read.
static ValueRange heldScaled(const View &view) {
  ValueRange own = heldByArray(view);
  if (!view.scaling)
    return own;
  ValueRange scaled{0, 0}; // beside the array
  for (size_t channel = 0; channel < view.scaling->shift.size(); ++channel)
    for (double end : {own.low, own.high}) {
      float value = view.scaling->applied(static_cast<float>(end), channel);
      if (!std::isfinite(value))
        return {NAN, NAN};
      scaled.low = std::min<double>(scaled.low, value);
      scaled.high = std::max<double>(scaled.high, value);
    }
  return scaled;
}

/// Numbers that elements of the view can be; NaN if values are to be read.
static ValueRange heldBy(const View &view) {
  ValueRange held = heldScaled(view);
  for (const View::Spot &spot : view.spots) {
    if (!std::isfinite(spot.value))
      return {NAN, NAN};
    held.low = std::min<double>(held.low, spot.value);
    held.high = std::max<double>(held.high, spot.value);
  }
  return held;
}

void requireValues(const InputSpec &spec, Sample &sample,
                   const std::function<std::string()> &place) {
  bool isNormalized = sample.normalization && (spec.range || spec.sumsToOne);
  if (sample.unread && !isNormalized && !spec.sumsToOne)
    if (ValueRange taken = takenBy(spec), held = heldBy(*sample.unread);
        taken.low <= held.low && held.high <= taken.high)
      return;
  sample.settle();
  if (!isNormalized)
    return requireFinal(spec, sample.values, place);
  Sample normalized = sample;
  sample.normalization->apply(normalized);
  requireFinal(spec, normalized.values, place);
}

void requireElements(const InputSpec &spec, const Source &source) {
  if (!spec.stored)
    return;
  bool isWord = spec.stored == artifact::DType::U16;
  for (int64_t sample : source.firstSamples()) {
    const ArrayHeader &file = source.fileOf(sample);
    if (int bits = unsignedBits(file.type); bits > 0 && bits <= (isWord ? 16 : 8))
      continue;
    std::string type(nameOf(file.type)), option = "--source " + source.name();
    throw Error(
        ErrorCode::BadInput,
        "'" + file.path + "' holds " + type + " elements, but the artifact takes " + source.name() +
            " as " + (isWord ? "u16" : "u8") + ": compile it " +
            (file.type == ElementType::U16 ? "with " + option + "=" + type : "without " + option));
  }
}

} // namespace dlc::rt
