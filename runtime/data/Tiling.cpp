// All copies are the same loop over rows: per dimension a table says which index of the image
// belongs to which index of the tile.
#include "runtime/data/Tiling.h"

#include "runtime/artifact/Align.h"
#include "runtime/data/readers/Array.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace dlc::rt {

std::vector<TileSpan> tilesAlong(int64_t extent, int64_t tile, int64_t overlap, int64_t alignment) {
  if (extent <= tile)
    return {{0, 0, extent}};
  int64_t last = alignUp(extent - tile, alignment);
  int64_t advance = (tile - 2 * overlap) / alignment * alignment;
  if (advance <= 0)
    return {};
  std::vector<TileSpan> spans;
  for (int64_t start = 0; start < last; start += advance)
    spans.push_back({start, start + overlap, 0});
  spans.push_back({last, last + overlap, extent});
  spans.front().keepBegin = 0;
  for (size_t i = 0; i + 1 < spans.size(); ++i)
    spans[i].keepEnd = spans[i + 1].keepBegin;
  return spans;
}

std::vector<int64_t> spatialExtents(std::span<const int64_t> shape,
                                    const artifact::Tiling &tiling) {
  std::span<const int64_t> spatial = shape.last(tiling.overlap()->size());
  return {spatial.begin(), spatial.end()};
}

/// Reflects like numpy's mode "reflect": the edge itself is not repeated.
static int64_t mirrored(int64_t index, int64_t extent) {
  if (extent == 1)
    return 0;
  index %= 2 * (extent - 1);
  return index < extent ? index : 2 * (extent - 1) - index;
}

/// Calls `row(tile offset, image offset)` for every combination of the tables' outer dimensions;
/// `tables[d]` has pairs of offsets, the last dimension is left to the caller.
using Offsets = std::vector<std::pair<int64_t, int64_t>>;
static void forEachRow(std::span<const Offsets> tables, int64_t tile, int64_t image,
                       const std::function<void(int64_t, int64_t)> &row) {
  if (tables.size() == 1)
    return row(tile, image);
  for (auto [inTile, inImage] : tables.front())
    forEachRow(tables.subspan(1), tile + inTile, image + inImage, row);
}

/// Scales pairs of indices of each dimension by the strides of the two row-major shapes.
static void scale(std::vector<Offsets> &tables, std::span<const int64_t> tileShape,
                  std::span<const int64_t> imageShape) {
  int64_t inTile = 1, inImage = 1;
  for (size_t dim = tables.size(); dim-- > 0;) {
    for (auto &[a, b] : tables[dim]) {
      a *= inTile;
      b *= inImage;
    }
    inTile *= tileShape[dim];
    inImage *= imageShape[dim];
  }
}

static Offsets channels(int64_t count) {
  Offsets offsets;
  for (int64_t channel = 0; channel < count; ++channel)
    offsets.emplace_back(channel, channel);
  return offsets;
}

Tiling::Tiling(const artifact::Tiling *planned, std::vector<int64_t> tileExtents)
    : tile(std::move(tileExtents)) {
  if (!planned)
    return;
  overlap.assign(planned->overlap()->begin(), planned->overlap()->end());
  alignment.assign(planned->alignment()->begin(), planned->alignment()->end());
  if (planned->parameters() && planned->parameters()->size() == overlap.size())
    for (const flatbuffers::String *name : *planned->parameters())
      parameters.push_back(name->str());
}

/// The options that make tiles of which about half is kept, or that hold the whole image if that is
/// less; empty if some extent is no parameter.
std::string Tiling::setting(std::span<const int64_t> extents) const {
  if (parameters.empty())
    return "";
  std::map<std::string, int64_t> numbers;
  std::map<std::string, std::string> lists;
  for (size_t dim = 0; dim < tile.size(); ++dim) {
    bool fits = !tilesAlong(extents[dim], tile[dim], overlap[dim], alignment[dim]).empty();
    int64_t whole = alignUp(extents[dim], alignment[dim]);
    int64_t wanted = fits ? tile[dim] : std::min(whole, 4 * overlap[dim]);
    const std::string &name = parameters[dim];
    if (name.empty())
      return "";
    if (size_t bracket = name.find('['); bracket != std::string::npos) {
      std::string &items = lists[name.substr(0, bracket)];
      items += (items.empty() ? "" : ",") + std::to_string(wanted);
    } else
      numbers[name] = std::max(numbers[name], wanted);
  }
  std::string text;
  for (const auto &[name, number] : numbers)
    text += " --set predict." + name + "=" + std::to_string(number);
  for (const auto &[name, items] : lists)
    text += " --set 'predict." + name + "=[" + items + "]'";
  return text;
}

Error Tiling::noInterior(std::span<const int64_t> extents) const {
  int64_t most = *std::max_element(overlap.begin(), overlap.end());
  std::string options = setting(extents);
  return Error(ErrorCode::BadInput,
               "tiles of " + shapeText(tile) + " have no interior beside the network's reach of " +
                   shapeText(overlap) + " to each side, which images of " + shapeText(extents) +
                   " need; compile for larger tiles" +
                   (options.empty() ? ", above " + std::to_string(2 * most) : ":" + options));
}

std::vector<Tile> Tiling::tiles(std::span<const int64_t> extents) const {
  if (overlap.empty())
    return {Tile(extents.size())};
  std::vector<Tile> all(1);
  for (size_t dim = 0; dim < tile.size(); ++dim) {
    std::vector<TileSpan> spans = tilesAlong(extents[dim], tile[dim], overlap[dim], alignment[dim]);
    if (spans.empty())
      throw noInterior(extents);
    std::vector<Tile> longer;
    for (const Tile &each : all)
      for (const TileSpan &span : spans) {
        longer.push_back(each);
        longer.back().push_back(span);
      }
    all = std::move(longer);
  }
  return all;
}

std::vector<float> Tiling::cut(const Sample &sample, const Tile &at) const {
  if (overlap.empty())
    return sample.values;
  size_t leading = sample.shape.size() - tile.size();
  std::vector<int64_t> shape;
  std::vector<Offsets> tables;
  if (leading) {
    shape.push_back(sample.shape[0]);
    tables.push_back(channels(sample.shape[0]));
  }
  for (size_t dim = 0; dim < tile.size(); ++dim) {
    shape.push_back(tile[dim]);
    Offsets &table = tables.emplace_back();
    for (int64_t i = 0; i < tile[dim]; ++i)
      table.emplace_back(i, mirrored(at[dim].start + i, sample.shape[dim + leading]));
  }
  scale(tables, shape, sample.shape);
  std::vector<float> values(static_cast<size_t>(
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())));
  forEachRow(tables, 0, 0, [&](int64_t inTile, int64_t inImage) {
    for (auto [to, from] : tables.back())
      values[static_cast<size_t>(inTile + to)] = sample.values[static_cast<size_t>(inImage + from)];
  });
  return values;
}

std::vector<int64_t> Tiling::outputShape(std::span<const int64_t> tileShape,
                                         std::span<const int64_t> extents) const {
  std::vector<int64_t> shape(tileShape.begin(), tileShape.end());
  size_t leading = shape.size() - overlap.size();
  for (size_t dim = 0; dim < overlap.size(); ++dim)
    shape[dim + leading] = (extents[dim] * tileShape[dim + leading] + tile[dim] - 1) / tile[dim];
  return shape;
}

void Tiling::paste(std::span<const float> result, std::span<const int64_t> tileShape,
                   const Tile &at, std::span<float> image,
                   std::span<const int64_t> imageShape) const {
  if (overlap.empty()) {
    std::copy(result.begin(), result.end(), image.begin());
    return;
  }
  size_t leading = tileShape.size() - tile.size();
  std::vector<Offsets> tables;
  if (leading)
    tables.push_back(channels(tileShape[0]));
  for (size_t dim = 0; dim < tile.size(); ++dim) {
    // Spans are aligned, so that they are whole elements of an output of another resolution, too;
    // only the image's end need not be.
    auto element = [&](int64_t pixel) {
      return (pixel * tileShape[dim + leading] + tile[dim] - 1) / tile[dim];
    };
    Offsets &table = tables.emplace_back();
    for (int64_t i = element(at[dim].keepBegin); i < element(at[dim].keepEnd); ++i)
      table.emplace_back(i - element(at[dim].start), i);
  }
  scale(tables, tileShape, imageShape);
  forEachRow(tables, 0, 0, [&](int64_t inTile, int64_t inImage) {
    for (auto [from, to] : tables.back())
      image[static_cast<size_t>(inImage + to)] = result[static_cast<size_t>(inTile + from)];
  });
}

} // namespace dlc::rt
