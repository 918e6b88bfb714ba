// A point is drawn in each box of a grid, and the pixel that holds it is a spot; where boxes reach
// beyond the image, the point may be outside and is none. The edge of boxes is a real number, since
// a rounded one would give another share of spots. So two boxes may share a pixel, and a box whose
// point lies in another one's spot draws again. The values that replace the pixels are those of the
// image without spots. Draws are counted: each spot has a range of words of its own.
#include "runtime/data/steps/BlindSpot.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
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

/// Those of one channel.
class Spots {
  using Indices = View::Indices; // the channel, then those of `extents`

public:
  Spots(const BlindSpot &step, const View &image, const Draw &draw, size_t channel)
      : step(step), image(image), shape(image.shape()), extents(spatialOf(shape)), draw(draw),
        channel(channel), firstWord(uint64_t{channel} << 32), edge(boxEdge(step, extents.size())) {
    place();
  }

  /// Replaces them in what `image` shall become, and says in the mask which they are.
  void hide(View &hidden, View &mask) const {
    std::map<Indices, float> replaced; // by place: the last one stays
    for (size_t spot = 0; spot < places.size(); ++spot)
      replaced[places[spot]] = replacementOf(spot);
    for (size_t spot = 0; spot < places.size(); ++spot)
      hideNeighbours(spot, replaced);
    for (const auto &[at, value] : replaced)
      hidden.spots.push_back({at, value});
    for (const Indices &at : places)
      mask.spots.push_back({at, 1});
  }

private:
  uint64_t wordOf(uint64_t spot) const { return firstWord + spot * wordsPerSpot; }

  Indices inChannel() const { return {static_cast<int64_t>(channel)}; }

  void place() {
    Extents boxes;
    for (int64_t extent : extents)
      boxes.push_back(static_cast<int64_t>(std::ceil(static_cast<double>(extent) / edge)));
    auto count = static_cast<uint64_t>(product(boxes));
    std::vector<bool> isTaken(product(extents));
    for (uint64_t box = 0; box < count; ++box)
      for (uint64_t attempt = 0; attempt < attempts; ++attempt) {
        Indices at = pixelIn(boxes, box, attempt);
        if (!isInside(at))
          break;
        size_t offset = image.offsetOf(at) - channel * isTaken.size();
        if (isTaken[offset])
          continue;
        isTaken[offset] = true;
        places.push_back(at);
        break;
      }
    if (!places.empty())
      return;
    Indices &at = places.emplace_back(inChannel()); // no sample is without a spot
    for (size_t dim = 0; dim < extents.size(); ++dim)
      at[dim + 1] = draw.below(wordOf(count) + dim, extents[dim]);
  }

  /// The pixel that holds a point drawn in a box of the grid; it may lie beyond the image.
  Indices pixelIn(const Extents &boxes, uint64_t box, uint64_t attempt) const {
    Indices at = inChannel();
    uint64_t rest = box;
    for (size_t dim = boxes.size(); dim-- > 0;) {
      auto along = static_cast<uint64_t>(boxes[dim]);
      double share = std::ldexp(draw.word(wordOf(box) + attempt * attemptWords + dim), -32);
      at[dim + 1] = static_cast<int64_t>((static_cast<double>(rest % along) + share) * edge);
      rest /= along;
    }
    return at;
  }

  bool isInside(const Indices &at) const {
    return std::equal(extents.begin(), extents.end(), at.begin() + 1, std::greater<>());
  }

  /// What lies within the radius of a place, cut off at the image's edges.
  struct Window {
    Indices first;
    std::array<int64_t, 3> size; // of the spatial axes
  };

  Window windowOf(const Indices &centre) const {
    Window window{inChannel(), {1, 1, 1}};
    for (size_t dim = 0; dim < extents.size(); ++dim) {
      int64_t at = centre[dim + 1], first = std::max<int64_t>(0, at - step.radius);
      window.first[dim + 1] = first;
      window.size[dim] = std::min(extents[dim], at + step.radius + 1) - first;
    }
    return window;
  }

  Indices placeIn(const Window &window, size_t number) const {
    Indices at = window.first;
    for (size_t dim = extents.size(); dim-- > 0;) {
      auto size = static_cast<size_t>(window.size[dim]);
      at[dim + 1] += static_cast<int64_t>(number % size);
      number /= size;
    }
    return at;
  }

  std::vector<float> neighboursOf(const Indices &centre) const {
    Window window = windowOf(centre);
    View part = image;
    part.cut(std::span(window.first).subspan(1, extents.size()),
             std::span(window.size).first(extents.size()));
    std::vector<float> all(part.elements()); // of each channel
    part.read<float>(std::as_writable_bytes(std::span(all)));
    Indices own = centre;
    for (size_t dim = 1; dim <= extents.size(); ++dim)
      own[dim] -= window.first[dim];
    all.erase(all.begin() + static_cast<ptrdiff_t>(part.offsetOf(own)));
    size_t count = product(window.size);
    auto first = all.begin() + static_cast<ptrdiff_t>(channel * count);
    return {first, first + static_cast<ptrdiff_t>(count) - 1};
  }

  float replacementOf(size_t spot) const {
    const Indices &centre = places[spot];
    uint64_t word = wordOf(spot) + replacementWord;
    if (step.replacement == SpotReplacement::Normal)
      return image.element(centre) + static_cast<float>(step.sigma * draw.normal(word / 2));
    if (step.replacement == SpotReplacement::Mean || step.replacement == SpotReplacement::Median) {
      std::vector<float> around = neighboursOf(centre);
      return around.empty()                                ? image.element(centre)
             : step.replacement == SpotReplacement::Median ? medianOf(around)
                                                           : meanOf(around);
    }
    Window window = windowOf(centre);
    auto count = static_cast<int64_t>(product(window.size));
    if (step.replacement == SpotReplacement::Uniform && count > 1) {
      // The last place stands for the centre, which is not drawn.
      Indices drawn = placeIn(window, static_cast<size_t>(draw.below(word, count - 1)));
      return image.element(drawn == centre ? placeIn(window, static_cast<size_t>(count - 1))
                                           : drawn);
    }
    return image.element(placeIn(window, static_cast<size_t>(draw.below(word, count))));
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
  void hideNeighbours(size_t spot, std::map<Indices, float> &replaced) const {
    if (step.structure.empty())
      return;
    size_t axis = axisOf(step, extents.size());
    auto length = static_cast<int64_t>(step.structure.size());
    for (int64_t i = 0; i < length; ++i) {
      Indices at = places[spot];
      at[axis + 1] += i - length / 2;
      if (step.structure[static_cast<size_t>(i)] && i != length / 2 && at[axis + 1] >= 0 &&
          at[axis + 1] < extents[axis])
        replaced[at] = static_cast<float>(draw.between(
            structureWords + firstWord + spot * step.structure.size() + static_cast<uint64_t>(i),
            -2, 2));
    }
  }

  // Behind the words of all spots come those of each further attempt to place them.
  static constexpr uint64_t attempts = 8, attemptWords = uint64_t{1} << 28;
  static constexpr uint64_t structureWords = attempts * attemptWords;

  const BlindSpot &step;
  const View &image;
  Extents shape;
  std::span<const int64_t> extents;
  const Draw &draw;
  size_t channel;
  uint64_t firstWord;
  double edge;
  std::vector<Indices> places;
};

} // namespace

std::array<Sample, 3> makeBlindSpots(const BlindSpot &step, Sample sample, const Draw &draw,
                                     bool hides) {
  if (!sample.view().spots.empty()) // of another such step
    sample.settle();
  const View &image = sample.view();
  std::array<Sample, 3> result = {sample, sample, {sample.shape, {}, true}};
  View &hidden = result[0].view();
  View &mask = result[2].unread.emplace(image.zeros());
  for (int64_t channel = 0; hides && channel < sample.shape[0]; ++channel)
    Spots(step, image, draw, static_cast<size_t>(channel)).hide(hidden, mask);
  hidden.isWhole &= !hides;
  return result;
}

} // namespace dlc::rt
