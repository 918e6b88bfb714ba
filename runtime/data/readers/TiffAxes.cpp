// ImageJ writes `ImageJ=VERSION` and lines `key=value`; channels are fastest, then slices, then
// frames (ij.io.TiffEncoder). OME writes XML, of which attributes of three elements matter: Image,
// Pixels and TiffData (https://docs.openmicroscopy.org/ome-model, OME-TIFF).

#include "runtime/data/readers/TiffAxes.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/readers/Sizes.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace dlc::rt {

static Error refused(const std::string &path, const std::string &why) {
  return Error(ErrorCode::BadInput, "cannot read '" + path + "': " + why);
}

/// A count; `otherwise` for text that is none.
static int64_t countOf(std::string_view text, int64_t otherwise) {
  int64_t count = otherwise;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && count >= 0 ? count : otherwise;
}

/// Slowest first; axes of one step are none.
static PageAxes axesOf(const std::string &path, std::string_view letters,
                       const std::array<int64_t, 3> &extents, int64_t samples) {
  PageAxes axes;
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] > 1) {
      axes.letters += letters[i];
      axes.extents.push_back(extents[i]);
    }
  if (samples > 1 && axes.letters.find('C') != std::string::npos)
    throw refused(path, "its channels lie in pages and in the samples of a pixel; save it with "
                        "either of them");
  return axes;
}

static uint64_t product(const std::string &path, const std::array<int64_t, 3> &extents) {
  return checkedProduct(path, {static_cast<uint64_t>(extents[0]), static_cast<uint64_t>(extents[1]),
                               static_cast<uint64_t>(extents[2])});
}

//===- ImageJ ---------------------------------------------------------------------------------===//

static PageAxes imageJAxes(const std::string &path, std::string_view description, int64_t pages,
                           int64_t samples) {
  auto field = [&](std::string_view key) {
    size_t at = description.find("\n" + std::string(key) + "=");
    return at == std::string_view::npos ? 1 : countOf(description.substr(at + key.size() + 2), 1);
  };
  int64_t images = field("images");
  if (pages == 1 && images > 1)
    throw refused(path, "ImageJ has put " + std::to_string(images) +
                            " images behind its one page, as it does beyond 4 GB; save it as "
                            "BigTIFF, OME-TIFF or .npy");
  std::array<int64_t, 3> extents = {field("frames"), field("slices"), field("channels")};
  if (product(path, extents) != static_cast<uint64_t>(pages))
    return {}; // somebody has changed the pages since
  return axesOf(path, "NZC", extents, samples);
}

//===- OME ------------------------------------------------------------------------------------===//

namespace {

/// Goes through the start tags of an XML text.
class StartTags {
public:
  explicit StartTags(std::string_view text) : text(text) {}

  bool next() {
    for (;;) {
      at = text.find('<', at);
      if (at == std::string_view::npos)
        return false;
      if (text.substr(at).starts_with("<!--"))
        at = std::min(text.find("-->", at), text.size());
      else if (++at < text.size() && std::string_view("/?!").find(text[at]) == text.npos)
        break;
    }
    size_t end = std::min(text.find_first_of(" \t\r\n/>", at), text.size());
    name = text.substr(at, end - at);
    name.remove_prefix(name.find(':') == name.npos ? 0 : name.find(':') + 1);
    at = end;
    readAttributes();
    return true;
  }

  bool is(std::string_view wanted) const { return name == wanted; }
  /// Empty if the element has none of this name.
  std::string_view attribute(std::string_view wanted) const {
    for (const auto &[key, value] : attributes)
      if (key == wanted)
        return value;
    return {};
  }

private:
  void readAttributes() {
    attributes.clear();
    while (at < text.size()) {
      at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
      size_t equals = text.find_first_of("=>", at);
      if (equals == text.npos || text[equals] == '>')
        return;
      std::string_view key = text.substr(at, equals - at);
      key = key.substr(0, key.find_last_not_of(" \t\r\n") + 1);
      size_t quote = text.find_first_of("\"'", equals);
      size_t close = quote == text.npos ? quote : text.find(text[quote], quote + 1);
      if (close == text.npos) {
        at = text.size();
        return;
      }
      attributes.emplace_back(key, text.substr(quote + 1, close - quote - 1));
      at = close + 1;
    }
  }

  std::string_view text, name;
  std::vector<std::pair<std::string_view, std::string_view>> attributes;
  size_t at = 0;
};

/// The planes of an image, in the order of its pages: fastest first.
struct Planes {
  std::string order; // of Z, C and T
  std::array<int64_t, 3> extents;

  int64_t index(const std::array<int64_t, 3> &position) const {
    return position[0] + extents[0] * (position[1] + extents[1] * position[2]);
  }
};

} // namespace

static Planes planesOf(const std::string &path, const StartTags &pixels, int64_t samples) {
  Planes planes = {std::string(pixels.attribute("DimensionOrder")), {}};
  planes.order.erase(0, planes.order.starts_with("XY") ? 2 : 0);
  std::string sorted = planes.order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != "CTZ")
    throw refused(path, "its OME metadata have no DimensionOrder; save it with one, or without "
                        "OME's description");
  for (size_t i = 0; i < 3; ++i) {
    char letter = planes.order[i];
    planes.extents[i] = countOf(pixels.attribute(std::string("Size") + letter), 1);
    if (letter == 'C' && planes.extents[i] % samples == 0)
      planes.extents[i] /= samples;
  }
  return planes;
}

/// TiffData says at which page planes begin; here they are where the order puts them.
static bool isInOrder(const StartTags &tiffData, const Planes &planes, int64_t samples) {
  std::array<int64_t, 3> first = {};
  for (size_t i = 0; i < 3; ++i) {
    first[i] = countOf(tiffData.attribute(std::string("First") + planes.order[i]), 0);
    first[i] /= planes.order[i] == 'C' ? samples : 1;
    if (first[i] >= planes.extents[i])
      return false;
  }
  return planes.index(first) == countOf(tiffData.attribute("IFD"), 0);
}

static PageAxes omeAxes(const std::string &path, std::string_view description, int64_t pages,
                        int64_t samples) {
  Planes planes;
  int64_t images = 0;
  for (StartTags tags(description); tags.next();)
    if (tags.is("Pixels") && ++images == 1)
      planes = planesOf(path, tags, samples);
  if (images == 0)
    return {};
  if (images > 1)
    throw refused(path, "it holds " + std::to_string(images) +
                            " images (OME series); save the one to read in a file of its own");
  if (uint64_t promised = product(path, planes.extents); promised != static_cast<uint64_t>(pages))
    throw refused(path, "its OME metadata promise " + std::to_string(promised) +
                            " planes, but it holds " + std::to_string(pages) +
                            "; where several files hold them, save all in one");
  for (StartTags tags(description); tags.next();)
    if (tags.is("TiffData") && !isInOrder(tags, planes, samples))
      throw refused(path, "its OME metadata put the planes into an order of their own; save it in "
                          "the order of its DimensionOrder");
  std::string letters(planes.order.rbegin(), planes.order.rend());
  std::replace(letters.begin(), letters.end(), 'T', 'N');
  std::reverse(planes.extents.begin(), planes.extents.end());
  return axesOf(path, letters, planes.extents, samples);
}

PageAxes pageAxes(const std::string &path, std::string_view description, int64_t pages,
                  int64_t samples) {
  if (description.starts_with("ImageJ="))
    return imageJAxes(path, description, pages, samples);
  bool isOme =
      description.find("<OME") != description.npos || description.find(":OME ") != description.npos;
  return isOme ? omeAxes(path, description, pages, samples) : PageAxes{};
}

} // namespace dlc::rt
