#include "runtime/data/steps/Steps.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace dlc::rt {

//===- From calls -----------------------------------------------------------------------------===//

namespace {

class Arguments {
public:
  explicit Arguments(const artifact::CallT &call) : call(call) {}

  /// Null if the call has none of this name.
  const artifact::ArgumentT *find(const std::string &name) const {
    for (const auto &argument : call.arguments)
      if (argument->name == name)
        return argument.get();
    return nullptr;
  }
  template <typename T = double> std::vector<T> numbers(const std::string &name) const {
    std::vector<T> result;
    if (const artifact::ArgumentT *argument = find(name)) {
      for (double number : argument->floats)
        result.push_back(static_cast<T>(number));
      for (int64_t number : argument->ints)
        result.push_back(static_cast<T>(number));
    }
    return result;
  }
  double number(const std::string &name) const {
    std::vector<double> given = numbers(name);
    if (given.size() != 1)
      refuse(name);
    return given[0];
  }
  int64_t integer(const std::string &name, int64_t least) const {
    std::vector<int64_t> given = numbers<int64_t>(name);
    if (given.size() != 1 || given[0] < least)
      refuse(name);
    return given[0];
  }
  Extents size() const {
    Extents given = numbers<int64_t>("size");
    if (given.empty() || std::any_of(given.begin(), given.end(), [](int64_t n) { return n < 1; }))
      refuse("size");
    return given;
  }
  std::pair<double, double> pair(const std::string &name) const {
    std::vector<double> given = numbers(name);
    if (given.size() != 2)
      refuse(name);
    return {given[0], given[1]};
  }

  [[noreturn]] void refuse(const std::string &name) const {
    throw Error(ErrorCode::Artifact, "data step " + call.name + " has no sound '" + name + "'");
  }

private:
  const artifact::CallT &call;
};

} // namespace

static DataStep makeNormalize(const artifact::CallT &call) {
  Arguments arguments(call);
  if (arguments.find("percentile")) {
    auto [low, high] = arguments.pair("percentile");
    if (!(low >= 0 && low < high && high <= 100))
      arguments.refuse("percentile");
    return NormalizePercentile{low, high};
  }
  NormalizeChannels given{false, arguments.numbers<float>("mean"), arguments.numbers<float>("std")};
  if (!given.mean.empty() && !given.deviation.empty())
    return given;
  std::string mode = "dataset";
  for (const auto &argument : call.arguments)
    if (!argument->text.empty())
      mode = argument->text;
  if (mode == "per_image")
    return NormalizePerImage{};
  if (mode == "dataset" && given.mean.empty() && given.deviation.empty())
    return NormalizeChannels{true, {}, {}, normalizeEpsilon};
  throw Error(ErrorCode::Artifact, "data step normalize wants per_image, dataset, percentile, or "
                                   "mean and std");
}

static DataStep makeFlip(const artifact::CallT &call) {
  return Flip{call.arguments.empty() ? "" : call.arguments[0]->text};
}

static DataStep makeRandomResizedCrop(const artifact::CallT &call) {
  Arguments arguments(call);
  auto scale = arguments.pair("scale"), ratio = arguments.pair("ratio");
  if (!(ratio.first > 0))
    arguments.refuse("ratio");
  return RandomResizedCrop{
      arguments.size(), {scale.first, scale.second}, {ratio.first, ratio.second}};
}

static DataStep makeBlindSpot(const artifact::CallT &call) {
  static constexpr std::string_view replacements[] = {"uniform_with_center", "uniform", "normal",
                                                      "mean", "median"};
  Arguments arguments(call);
  auto named = [&](const std::string &name) {
    const artifact::ArgumentT *argument = arguments.find(name);
    return argument ? argument->text : "";
  };
  auto replacement = std::find(std::begin(replacements), std::end(replacements), named("replace"));
  if (replacement == std::end(replacements))
    arguments.refuse("replace");
  std::string axis = named("axis"), box = named("box");
  if (axis != "X" && axis != "Y" && axis != "Z")
    arguments.refuse("axis");
  if (box != "exact" && box != "compat")
    arguments.refuse("box");
  double percent = arguments.number("percent");
  if (!(percent > 0 && percent <= 100))
    arguments.refuse("percent");
  return BlindSpot{percent,
                   arguments.integer("radius", 1),
                   static_cast<SpotReplacement>(replacement - std::begin(replacements)),
                   arguments.number("sigma"),
                   box == "compat",
                   arguments.numbers<int64_t>("struct"),
                   axis[0]};
}

DataStep makeStep(const artifact::CallT &call) {
  using Maker = DataStep (*)(const artifact::CallT &);
  static constexpr std::pair<std::string_view, Maker> makers[] = {
      {"normalize", makeNormalize},
      {"flip", makeFlip},
      {"rotate90", [](const artifact::CallT &) -> DataStep { return Rotate90{}; }},
      {"crop",
       [](const artifact::CallT &call) -> DataStep { return Crop{Arguments(call).size()}; }},
      {"random_crop",
       [](const artifact::CallT &call) -> DataStep {
         return Crop{Arguments(call).size(), Arguments(call).integer("padding", 0), true};
       }},
      {"resize",
       [](const artifact::CallT &call) -> DataStep { return Resize{Arguments(call).size()}; }},
      {"resize_pad",
       [](const artifact::CallT &call) -> DataStep { return ResizePad{Arguments(call).size()}; }},
      {"random_resized_crop", makeRandomResizedCrop},
      {"brightness",
       [](const artifact::CallT &call) -> DataStep {
         return Brightness{Arguments(call).number("delta")};
       }},
      {"contrast",
       [](const artifact::CallT &call) -> DataStep {
         return Contrast{Arguments(call).number("low"), Arguments(call).number("high")};
       }},
      {"gamma",
       [](const artifact::CallT &call) -> DataStep {
         return Gamma{Arguments(call).number("low"), Arguments(call).number("high")};
       }},
      {"noise",
       [](const artifact::CallT &call) -> DataStep {
         return Noise{Arguments(call).number("std")};
       }},
      {"patches",
       [](const artifact::CallT &call) -> DataStep { return Patches{Arguments(call).size()}; }},
      {"blind_spot", makeBlindSpot},
      {"one_hot",
       [](const artifact::CallT &call) -> DataStep {
         return OneHot{Arguments(call).integer("classes", 1)};
       }},
  };
  std::string known;
  for (auto [name, make] : makers) {
    if (name == call.name)
      return make(call);
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ErrorCode::Artifact,
              "data step '" + call.name + "' is not known to this dlc-run; known are " + known);
}

//===- Properties -----------------------------------------------------------------------------===//

template <typename... Steps> static bool isOneOf(const DataStep &step) {
  return (std::holds_alternative<Steps>(step) || ...);
}

/// True for steps that only training applies.
static bool isAugmentation(const DataStep &step) {
  return isOneOf<Flip, Rotate90, Brightness, Contrast, Gamma, Noise>(step);
}

/// Predictions are of whole volumes. Steps that cut at random are for images of one size; tiles
/// cover the whole of others.
static bool isLeftOut(const DataStep &step, Use use) {
  if (isAugmentation(step))
    return use != Use::Training;
  if (isOneOf<Patches>(step))
    return use == Use::Prediction || use == Use::PredictionInTiles;
  const auto *crop = std::get_if<Crop>(&step);
  return use == Use::PredictionInTiles &&
         ((crop && crop->isRandom) || isOneOf<RandomResizedCrop>(step));
}

bool keepsValues(const DataStep &step, bool isCategorical) {
  if (isOneOf<Resize, ResizePad, RandomResizedCrop, Brightness, Contrast, Gamma, Noise>(step))
    return isCategorical;
  return isOneOf<Flip, Rotate90, Crop, Patches>(step);
}

bool movesValues(const DataStep &step, bool noZeros) {
  if (const auto *crop = std::get_if<Crop>(&step))
    return !noZeros || crop->padding == 0;
  if (const auto *spots = std::get_if<BlindSpot>(&step))
    return isOfElements(*spots);
  return isOneOf<Flip, Rotate90, Patches>(step);
}

bool isNormalize(const DataStep &step) {
  return isOneOf<NormalizePerImage, NormalizePercentile, NormalizeChannels>(step);
}

bool measuresSample(const DataStep &normalize) {
  return isOneOf<NormalizePerImage, NormalizePercentile>(normalize);
}

Normalization normalizationOf(const DataStep &step, const Sample &sample) {
  return std::visit(
      [&](const auto &any) -> Normalization {
        if constexpr (requires { any.of(sample); })
          return any.of(sample);
        throw Error(ErrorCode::Artifact, "denormalize undoes normalize alone");
      },
      step);
}

size_t outputsOf(const std::vector<DataStep> &steps, size_t inputs) {
  for (const DataStep &step : steps)
    if (isOneOf<BlindSpot>(step)) {
      if (inputs != 1)
        throw Error(ErrorCode::Artifact, "data step blind_spot stands behind more than one array");
      inputs = 3;
    }
  return inputs;
}

static const char *nameOf(const DataStep &step) {
  static constexpr const char *names[] = {
      "normalize",  "normalize",           "normalize",  "flip",     "rotate90", "crop",  "resize",
      "resize_pad", "random_resized_crop", "brightness", "contrast", "gamma",    "noise", "one_hot",
      "patches",    "blind_spot"};
  static_assert(std::size(names) == std::variant_size_v<DataStep>);
  const auto *crop = std::get_if<Crop>(&step);
  return crop && crop->isRandom ? "random_crop" : names[step.index()];
}

//===- Shapes ---------------------------------------------------------------------------------===//

Extents sizeFor(const DataStep &step, const Extents &size, const Extents &shape) {
  size_t rank = spatialOf(shape).size();
  if (size.size() == 1)
    return Extents(rank, size[0]);
  if (size.size() != rank)
    throw Error(ErrorCode::BadInput, std::string("data step ") + nameOf(step) + " gives " +
                                         std::to_string(size.size()) +
                                         " extents to images of shape " + shapeText(shape));
  return size;
}

static Extents withSpatial(const Extents &shape, std::span<const int64_t> size) {
  Extents result = {shape[0]};
  result.insert(result.end(), size.begin(), size.end());
  return result;
}

namespace {

struct ShapeOf {
  const DataStep &step;
  const Extents &shape;
  Use use;

  /// Labels have no place that could move.
  bool isImage() const { return shape.size() > 1; }

  template <typename Step> Extents operator()(const Step &) const { return shape; }
  Extents operator()(const Crop &crop) const {
    if (!isImage())
      return shape;
    Extents size = sizeFor(step, crop.size, shape);
    for (size_t dim = 0; dim < size.size(); ++dim)
      if (size[dim] > shape[dim + 1] + 2 * crop.padding)
        throw Error(ErrorCode::BadInput, std::string("data step ") + nameOf(step) + " takes " +
                                             shapeText(size) + " of an image that is only " +
                                             shapeText(spatialOf(shape)) +
                                             ": put resize_pad before it, or take less");
    return withSpatial(shape, size);
  }
  Extents operator()(const Patches &patches) const {
    if (!isImage())
      return shape;
    Extents size = sizeFor(step, patches.size, shape);
    if (patchesOf(wholeBox(spatialOf(shape)), size) == 0)
      throw Error(ErrorCode::BadInput,
                  "data step patches takes " + shapeText(size) + " of a volume that is only " +
                      shapeText(spatialOf(shape)) + ": take smaller patches or larger volumes");
    return withSpatial(shape, size);
  }
  Extents operator()(const BlindSpot &spots) const {
    if (use == Use::Training || use == Use::Evaluation)
      checkSpots(spots, shape);
    return shape;
  }
  Extents operator()(const Rotate90 &) const {
    size_t rank = shape.size();
    if (rank < 3 || shape[rank - 1] != shape[rank - 2])
      throw Error(ErrorCode::BadInput,
                  "data step rotate90 wants square images, got samples of shape " +
                      shapeText(shape) + ": put crop, resize or resize_pad before it");
    return shape;
  }
  Extents operator()(const Resize &resize) const { return resized(resize.size); }
  Extents operator()(const ResizePad &resize) const { return resized(resize.size); }
  Extents operator()(const RandomResizedCrop &crop) const {
    if (isImage() && shape.size() != 3)
      throw Error(ErrorCode::BadInput, "data step random_resized_crop is for planes, not for "
                                       "images of shape " +
                                           shapeText(shape) + ": take random_crop");
    return resized(crop.size);
  }
  Extents operator()(const OneHot &oneHot) const {
    if (shape.empty())
      return {oneHot.classes};
    if (shape[0] != 1)
      throw Error(ErrorCode::BadInput, "data step one_hot wants one channel of classes, got images "
                                       "of shape " +
                                           shapeText(shape));
    Extents result = shape;
    result[0] = oneHot.classes;
    return result;
  }

private:
  Extents resized(const Extents &size) const {
    return isImage() ? withSpatial(shape, sizeFor(step, size, shape)) : shape;
  }
};

} // namespace

Extents resultShape(const DataStep &step, const Extents &shape, Use use) {
  return isLeftOut(step, use) ? shape : std::visit(ShapeOf{step, shape, use}, step);
}

void requireOneSize(const DataStep &step, std::span<const Extents> members) {
  if (!isOneOf<Crop, RandomResizedCrop>(step))
    return;
  const Extents *first = nullptr;
  for (const Extents &shape : members) {
    if (shape.size() < 2)
      continue;
    first = first ? first : &shape;
    if (!std::ranges::equal(spatialOf(shape), spatialOf(*first)))
      throw Error(ErrorCode::BadInput, std::string("data step ") + nameOf(step) +
                                           " cuts arrays of " + shapeText(spatialOf(*first)) +
                                           " and of " + shapeText(spatialOf(shape)) +
                                           " alike: give both one size first, as resize_pad does");
  }
}

//===- Values ---------------------------------------------------------------------------------===//

static double meanOf(Sample &sample) {
  sample.settle();
  double sum = 0;
  for (float value : sample.values)
    sum += value;
  return sum / static_cast<double>(sample.values.size());
}

static void oneHot(Sample &sample, int64_t classes) {
  sample.settle();
  size_t pixels = sample.values.size();
  std::vector<float> result(pixels * static_cast<size_t>(classes), 0.0f);
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    float value = sample.values[pixel];
    if (!(value >= 0 && value < static_cast<float>(classes)) || value != std::floor(value))
      throw Error(ErrorCode::BadInput,
                  "data step one_hot of " + std::to_string(classes) + " classes met the value " +
                      numberText(value) + ": number the classes from 0 to " +
                      std::to_string(classes - 1) + ", or give one_hot more of them");
    result[static_cast<size_t>(value) * pixels + pixel] = 1;
  }
  if (sample.shape.empty())
    sample.shape = {1};
  sample.shape[0] = classes;
  sample.values = std::move(result);
}

/// Ten tries, then the centre; height, then width.
static std::pair<Extents, Extents> drawBox(const RandomResizedCrop &crop, int64_t height,
                                           int64_t width, const Draw &draw) {
  auto area = static_cast<double>(height * width);
  for (uint64_t attempt = 0; attempt < 10; ++attempt) {
    double part = area * draw.between(4 * attempt, crop.scale[0], crop.scale[1]);
    double ratio =
        std::exp(draw.between(4 * attempt + 1, std::log(crop.ratio[0]), std::log(crop.ratio[1])));
    int64_t w = std::lround(std::sqrt(part * ratio)), h = std::lround(std::sqrt(part / ratio));
    if (0 < w && w <= width && 0 < h && h <= height)
      return {
          {draw.below(4 * attempt + 2, height - h + 1), draw.below(4 * attempt + 3, width - w + 1)},
          {h, w}};
  }
  double own = static_cast<double>(width) / static_cast<double>(height);
  int64_t w = width, h = height;
  if (own < crop.ratio[0])
    h = std::clamp<int64_t>(std::lround(static_cast<double>(width) / crop.ratio[0]), 1, height);
  else if (own > crop.ratio[1])
    w = std::clamp<int64_t>(std::lround(static_cast<double>(height) * crop.ratio[1]), 1, width);
  return {{(height - h) / 2, (width - w) / 2}, {h, w}};
}

namespace {

struct StepApplier {
  const DataStep &step;
  Sample &sample;
  const Draw &draw;
  Use use;

  template <typename Normalize>
    requires requires(const Normalize &n, const Sample &s) { n.of(s); }
  void operator()(const Normalize &normalize) const {
    sample.settle();
    normalize.of(sample).apply(sample);
  }

  void operator()(const Flip &flip) const {
    for (size_t rank = sample.shape.size(), dim = 1; dim < rank; ++dim) {
      bool isMeant =
          flip.axes.empty() ||
          (rank - dim <= 3 && flip.axes.find("XYZ"[rank - dim - 1]) != std::string::npos);
      if (isMeant && draw.coin(rank - dim))
        mirror(sample, dim);
    }
  }

  void operator()(const Rotate90 &) const {
    size_t rank = sample.shape.size();
    if (rank < 3 || sample.shape[rank - 1] != sample.shape[rank - 2])
      throw Error(ErrorCode::BadInput,
                  "data step rotate90 wants square images, got samples of shape " +
                      shapeText(sample.shape));
    for (int64_t turns = draw.below(0, 4); turns > 0; --turns)
      quarterTurn(sample);
  }

  void operator()(const Crop &crop) const {
    if (sample.shape.size() < 2)
      return;
    Extents size = sizeFor(step, crop.size, sample.shape), first;
    for (size_t dim = 0; dim < size.size(); ++dim) {
      int64_t places = sample.shape[dim + 1] + 2 * crop.padding - size[dim] + 1;
      bool isDrawn = crop.isRandom && use == Use::Training;
      first.push_back((isDrawn ? draw.below(dim, places) : (places - 1) / 2) - crop.padding);
    }
    cut(sample, first, size);
  }

  void operator()(const Patches &) const {}   // a patch is all that was read
  void operator()(const BlindSpot &) const {} // makes three members of one

  void operator()(const Resize &resize) const {
    if (sample.shape.size() > 1)
      resample(sample, sizeFor(step, resize.size, sample.shape));
  }

  void operator()(const ResizePad &resize) const {
    if (sample.shape.size() < 2)
      return;
    Extents size = sizeFor(step, resize.size, sample.shape), inner, first;
    double scale = std::numeric_limits<double>::max();
    for (size_t dim = 0; dim < size.size(); ++dim)
      scale = std::min(scale,
                       static_cast<double>(size[dim]) / static_cast<double>(sample.shape[dim + 1]));
    for (size_t dim = 0; dim < size.size(); ++dim) {
      inner.push_back(std::clamp<int64_t>(
          std::lround(scale * static_cast<double>(sample.shape[dim + 1])), 1, size[dim]));
      first.push_back(-((size[dim] - inner[dim]) / 2));
    }
    resample(sample, inner);
    cut(sample, first, size);
  }

  void operator()(const RandomResizedCrop &crop) const {
    if (sample.shape.size() < 2)
      return;
    if (use == Use::Training) {
      auto [first, size] = drawBox(crop, sample.shape[1], sample.shape[2], draw);
      cut(sample, first, size);
    }
    resample(sample, sizeFor(step, crop.size, sample.shape));
  }

  void operator()(const Brightness &brightness) const {
    auto added = static_cast<float>(draw.between(0, -brightness.delta, brightness.delta));
    change([&](float value) { return value + added; });
  }

  void operator()(const Contrast &contrast) const {
    auto mean = static_cast<float>(meanOf(sample));
    auto factor = static_cast<float>(draw.between(0, contrast.low, contrast.high));
    change([&](float value) { return mean + (value - mean) * factor; });
  }

  void operator()(const Gamma &gamma) const {
    sample.settle();
    auto [low, high] = std::minmax_element(sample.values.begin(), sample.values.end());
    float from = *low, span = *high - *low;
    auto power = static_cast<float>(draw.between(0, gamma.low, gamma.high));
    if (span > 0)
      change([&](float value) { return from + span * std::pow((value - from) / span, power); });
  }

  void operator()(const Noise &noise) const {
    uint64_t index = 0;
    change([&](float value) {
      return value + static_cast<float>(noise.deviation * draw.normal(index++));
    });
  }

  void operator()(const OneHot &encoding) const { oneHot(sample, encoding.classes); }

private:
  template <typename Function> void change(Function function) const {
    if (sample.isCategorical)
      return;
    sample.settle();
    std::transform(sample.values.begin(), sample.values.end(), sample.values.begin(), function);
  }
};

} // namespace

void applyStep(const DataStep &step, std::vector<Sample> &members, const Draw &draw, Use use) {
  if (isLeftOut(step, use))
    return;
  if (const auto *spots = std::get_if<BlindSpot>(&step)) {
    members.resize(3);
    if (!members[0].isAbsent()) {
      bool hides = use == Use::Training || use == Use::Evaluation;
      std::array<Sample, 3> made = makeBlindSpots(*spots, std::move(members[0]), draw, hides);
      std::ranges::move(made, members.begin());
    }
    return;
  }
  for (Sample &member : members)
    if (!member.isAbsent())
      std::visit(StepApplier{step, member, draw, use}, step);
}

} // namespace dlc::rt
