// A point is drawn in each box of a grid, and the pixel that holds it is a spot; where boxes reach
// beyond the image, the point may be outside and is none. The edge of boxes is a real number, since
// a rounded one would give another share of spots. So two boxes may share a pixel, and a box whose
// point lies in another one's spot draws again. The values that replace the pixels are read from
// the whole image, and written when all are known. Draws are counted: each spot has a range of
// words of its own.
#include "runtime/data/steps/BlindSpot.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace dlc::rt {

/// Words that a spot may use: a place in three axes, then the replacement.
static constexpr uint64_t wordsPerSpot = 8, replacementWord = 4;

bool isOfElements(const BlindSpot &step) {
  return step.structure.empty() && (step.replacement == SpotReplacement::Uniform ||
                                    step.replacement == SpotReplacement::UniformWithCenter);
}

double boxEdge(const BlindSpot &step, size_t axes) {
  double perSpot = 100 / step.percent;
  if (step.squareRootBoxes)
    return std::max(1.0, std::round(std::sqrt(perSpot)));
  // Not as powers, which make the edge of 64 pixels' box less than 4.
  return axes == 1 ? perSpot : axes == 2 ? std::sqrt(perSpot) : std::cbrt(perSpot);
}

static size_t product(std::span<const int64_t> extents) {
  return static_cast<size_t>(
      std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>()));
}

/// Index of the structure's axis among the spatial ones.
static size_t axisOf(const BlindSpot &step, size_t rank) {
  return rank - 1 - static_cast<size_t>(step.axis - 'X');
}

void checkSpots(const BlindSpot &step, std::span<const int64_t> shape) {
  std::span<const int64_t> extents = spatialOf(shape);
  if (extents.empty() || extents.size() > 3)
    throw Error(ErrorCode::BadInput,
                "data step blind_spot is for images, not for samples of shape " + shapeText(shape));
  auto axes = static_cast<double>(extents.size());
  auto pixels = static_cast<double>(product(extents));
  double box =
      step.squareRootBoxes ? std::pow(boxEdge(step, extents.size()), axes) : 100 / step.percent;
  if (pixels < box) {
    double largest = std::floor(std::pow(pixels, 1 / axes) + 1e-9); // edge of a box that fits
    double least = 100 / (step.squareRootBoxes ? largest * largest : pixels);
    throw Error(ErrorCode::BadInput, "data step blind_spot finds no spot in images of " +
                                         shapeText(extents) + ": one pixel in " + numberText(box) +
                                         " is one; take larger patches, or percent = " +
                                         numberText(std::ceil(least * 1000) / 1000) + " at least");
  }
  if (!step.structure.empty() && static_cast<size_t>(step.axis - 'X') >= extents.size())
    throw Error(ErrorCode::BadInput, std::string("data step blind_spot hides neighbours along ") +
                                         step.axis + ", which images of " + shapeText(extents) +
                                         " lack");
}

namespace {

/// One channel on its way, of elements T.
template <typename T> class Spots {
public:
  Spots(const BlindSpot &step, std::span<const int64_t> extents, std::span<T> values,
        const Draw &draw, uint64_t channel)
      : step(step), extents(extents), values(values), draw(draw), firstWord(channel << 32),
        edge(boxEdge(step, extents.size())) {
    place();
  }

  /// Replaces values, and says which in the mask.
  void hide(std::span<uint8_t> mask) const {
    std::vector<float> replacements;
    for (size_t spot = 0; spot < places.size(); ++spot)
      replacements.push_back(replacementOf(spot));
    for (size_t spot = 0; spot < places.size(); ++spot) {
      values[offsetOf(places[spot])] = static_cast<T>(replacements[spot]);
      mask[offsetOf(places[spot])] = 1;
    }
    for (size_t spot = 0; spot < places.size(); ++spot)
      hideNeighbours(spot);
  }

private:
  uint64_t wordOf(uint64_t spot) const { return firstWord + spot * wordsPerSpot; }

  size_t offsetOf(const Extents &at) const {
    int64_t offset = 0;
    for (size_t dim = 0; dim < at.size(); ++dim)
      offset = offset * extents[dim] + at[dim];
    return static_cast<size_t>(offset);
  }

  void place() {
    Extents boxes;
    for (int64_t extent : extents)
      boxes.push_back(static_cast<int64_t>(std::ceil(static_cast<double>(extent) / edge)));
    auto count = static_cast<uint64_t>(product(boxes));
    std::vector<bool> isTaken(values.size());
    for (uint64_t box = 0; box < count; ++box)
      for (uint64_t attempt = 0; attempt < attempts; ++attempt) {
        Extents at = pixelIn(boxes, box, attempt);
        if (!isInside(at))
          break;
        if (isTaken[offsetOf(at)])
          continue;
        isTaken[offsetOf(at)] = true;
        places.push_back(std::move(at));
        break;
      }
    if (!places.empty())
      return;
    Extents &at = places.emplace_back(); // no sample is without a spot
    for (size_t dim = 0; dim < extents.size(); ++dim)
      at.push_back(draw.below(wordOf(count) + dim, extents[dim]));
  }

  /// The pixel that holds a point drawn in a box of the grid; it may lie beyond the image.
  Extents pixelIn(const Extents &boxes, uint64_t box, uint64_t attempt) const {
    Extents at(boxes.size());
    uint64_t rest = box;
    for (size_t dim = boxes.size(); dim-- > 0;) {
      auto along = static_cast<uint64_t>(boxes[dim]);
      double share = std::ldexp(draw.word(wordOf(box) + attempt * attemptWords + dim), -32);
      at[dim] = static_cast<int64_t>((static_cast<double>(rest % along) + share) * edge);
      rest /= along;
    }
    return at;
  }

  bool isInside(const Extents &at) const {
    return std::ranges::equal(at, extents, std::ranges::less());
  }

  /// The box of what lies within the radius of a place, cut off at the image's edges.
  Box windowOf(const Extents &centre) const {
    Box window;
    for (size_t dim = 0; dim < extents.size(); ++dim) {
      window.first.push_back(std::max<int64_t>(0, centre[dim] - step.radius));
      window.size.push_back(std::min(extents[dim], centre[dim] + step.radius + 1) -
                            window.first[dim]);
    }
    return window;
  }

  static Extents placeIn(const Box &window, size_t number) {
    Extents at = window.first;
    for (size_t dim = at.size(); dim-- > 0;) {
      auto size = static_cast<size_t>(window.size[dim]);
      at[dim] += static_cast<int64_t>(number % size);
      number /= size;
    }
    return at;
  }

  std::vector<float> neighboursOf(const Extents &centre) const {
    Box window = windowOf(centre);
    auto width = static_cast<size_t>(window.size.back());
    size_t count = product(window.size), own = offsetOf(centre);
    std::vector<float> result;
    result.reserve(count);
    for (size_t row = 0; row < count; row += width) {
      size_t first = offsetOf(placeIn(window, row));
      for (size_t at = first; at < first + width; ++at)
        if (at != own)
          result.push_back(static_cast<float>(values[at]));
    }
    return result;
  }

  float replacementOf(size_t spot) const {
    const Extents &centre = places[spot];
    uint64_t word = wordOf(spot) + replacementWord;
    auto own = static_cast<float>(values[offsetOf(centre)]);
    if (step.replacement == SpotReplacement::Normal)
      return own + static_cast<float>(step.sigma * draw.normal(word / 2));
    if (step.replacement == SpotReplacement::Mean || step.replacement == SpotReplacement::Median) {
      std::vector<float> around = neighboursOf(centre);
      return around.empty()                                ? own
             : step.replacement == SpotReplacement::Median ? medianOf(around)
                                                           : meanOf(around);
    }
    Box window = windowOf(centre);
    auto count = static_cast<int64_t>(product(window.size));
    if (step.replacement == SpotReplacement::Uniform && count > 1) {
      // The last place stands for the centre, which is not drawn.
      Extents drawn = placeIn(window, static_cast<size_t>(draw.below(word, count - 1)));
      return static_cast<float>(values[offsetOf(
          drawn == centre ? placeIn(window, static_cast<size_t>(count - 1)) : drawn)]);
    }
    return static_cast<float>(
        values[offsetOf(placeIn(window, static_cast<size_t>(draw.below(word, count))))]);
  }

  static float meanOf(const std::vector<float> &values) {
    return static_cast<float>(std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size()));
  }

  /// Of an even number the mean of the middle two, as numpy.median.
  static float medianOf(std::vector<float> &values) {
    auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    float high = *middle;
    return values.size() % 2 ? high : (*std::max_element(values.begin(), middle) + high) / 2;
  }

  /// structN2V (Broaddus et al. 2020): what correlates with the spot becomes uniform in [-2, 2).
  void hideNeighbours(size_t spot) const {
    if (step.structure.empty())
      return;
    size_t axis = axisOf(step, extents.size());
    auto length = static_cast<int64_t>(step.structure.size());
    for (int64_t i = 0; i < length; ++i) {
      Extents at = places[spot];
      at[axis] += i - length / 2;
      if (step.structure[static_cast<size_t>(i)] && i != length / 2 && at[axis] >= 0 &&
          at[axis] < extents[axis])
        values[offsetOf(at)] = static_cast<T>(draw.between(
            structureWords + firstWord + spot * step.structure.size() + static_cast<uint64_t>(i),
            -2, 2));
    }
  }

  // Behind the words of all spots come those of each further attempt to place them.
  static constexpr uint64_t attempts = 8, attemptWords = uint64_t{1} << 28;
  static constexpr uint64_t structureWords = attempts * attemptWords;

  const BlindSpot &step;
  std::span<const int64_t> extents;
  std::span<T> values;
  const Draw &draw;
  uint64_t firstWord;
  double edge;
  std::vector<Extents> places;
};

} // namespace

/// Hides spots of a sample that is read as elements T, and says which.
template <typename T>
static void hideSpots(const BlindSpot &step, Sample &image, const Draw &draw,
                      std::span<uint8_t> mask) {
  std::vector<T> values(mask.size());
  image.view().read<T>(std::as_writable_bytes(std::span(values)));
  auto channels = static_cast<size_t>(image.shape[0]);
  size_t each = values.size() / channels;
  for (size_t channel = 0; channel < channels; ++channel)
    Spots<T>(step, spatialOf(image.shape), std::span(values).subspan(channel * each, each), draw,
             channel)
        .hide(mask.subspan(channel * each, each));
  image.unread = View::of(std::move(values), image.shape);
}

std::array<Sample, 3> makeBlindSpots(const BlindSpot &step, Sample sample, const Draw &draw,
                                     bool hides) {
  std::vector<uint8_t> mask(sample.view().elements());
  ElementType type = sample.view().scaling ? ElementType::F32 : sample.view().type;
  std::array<Sample, 3> result = {sample, sample, {sample.shape, {}, true}};
  if (hides && isOfElements(step) && type == ElementType::U8)
    hideSpots<uint8_t>(step, result[0], draw, mask);
  else if (hides && isOfElements(step) && type == ElementType::U16)
    hideSpots<uint16_t>(step, result[0], draw, mask);
  else if (hides)
    hideSpots<float>(step, result[0], draw, mask);
  result[2].unread = View::of(std::move(mask), sample.shape);
  return result;
}

} // namespace dlc::rt
