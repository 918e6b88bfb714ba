#include "runtime/data/Source.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/readers/Readers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>

namespace dlc::rt {

/// Axes of an array of `rank` dimensions that feeds an input of `inputRank`.
static std::string axesByRank(size_t rank, size_t inputRank) {
  constexpr std::string_view spatial = "ZYX";
  if (inputRank <= 1)
    return rank == 1 ? "N" : "";
  size_t spatialRank = std::min<size_t>(inputRank - 2, spatial.size());
  std::string tail(spatial.substr(spatial.size() - spatialRank));
  if (rank == inputRank)
    return "NC" + tail;
  return rank + 1 == inputRank ? "N" + tail : "";
}

/// Planes of one size as one array.
static std::shared_ptr<const Array> stacked(const ArrayHeader &stack,
                                            std::span<const ArrayHeader> planes) try {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  for (const ArrayHeader &plane : planes) {
    Array image = readArray(plane.path);
    bytes->insert(bytes->end(), image.bytes().begin(), image.bytes().end());
  }
  return std::make_shared<const Array>(stack, *bytes, bytes);
} catch (const std::bad_alloc &) {
  throw Error(ErrorCode::BadInput, "the images of '" + stack.path + "' do not fit into memory");
}

/// Readers know where the channels of an image are: before height and width. So axes only say
/// what the pages count.
static std::string axesOfImages(std::string axes, bool hasChannels) {
  size_t rank = hasChannels ? 4 : 3;
  if (size_t at = axes.find('C'); at != std::string::npos && (hasChannels || axes.size() > rank))
    axes.erase(at, 1);
  if (axes.size() == 2)
    axes.insert(0, "N");
  return hasChannels && axes.size() == 3 ? axes.insert(1, "C") : axes;
}

/// Whether both name the same axes, in any order. Those without N are of one sample.
static bool areSameAxes(std::string one, std::string two) {
  for (std::string *axes : {&one, &two}) {
    std::erase(*axes, 'N');
    std::sort(axes->begin(), axes->end());
  }
  return one == two;
}

/// Axes and shape of a file; those of its metadata where nothing else is stated, or the same in
/// another order.
static std::pair<std::string, Extents> axesOf(const ArrayHeader &header, const SourceUse &use) {
  std::string stated = use.axes;
  bool isImage = header.format != FileFormat::Npy && header.format != FileFormat::Idx;
  if (!header.axes.empty() && (stated.empty() || areSameAxes(stated, header.axes)))
    return {header.axes, header.axesShape};
  if (stated.empty())
    return {axesByRank(header.shape.size(), use.inputRank + use.lacksChannels), header.shape};
  if (isImage)
    stated = axesOfImages(std::move(stated), header.shape.size() == 4);
  else if (stated.size() + 1 == header.shape.size() && stated.find('N') == std::string::npos)
    stated.insert(0, "N");
  return {stated, header.shape};
}

Source::Source(std::string name, std::string path, const SourceUse &use,
               std::shared_ptr<ImageCache> cache)
    : label(std::move(name)), from(std::move(path)), cache(std::move(cache)) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(from, ignored)) {
    auto data = std::make_shared<const Array>(readArray(from));
    addPart(data->header(), data, use);
  } else if (use.takesClasses) {
    openClasses(use);
  } else {
    openImages(use);
  }
}

/// The class of each image, as if a file held them.
void Source::openClasses(const SourceUse &use) {
  std::map<std::string, std::string> images = imageFiles(from, use.images);
  folders = classFolders(from);
  if (folders.empty())
    throw Error(ErrorCode::BadInput, "'" + from + "' holds images, but " + label +
                                         " takes the class of each: put them into a folder for "
                                         "each class, or give a file of class numbers");
  std::vector<int32_t> classes;
  for (const auto &[name, file] : images) {
    std::string folder = name.substr(0, name.find('/'));
    auto place = std::lower_bound(folders.begin(), folders.end(), folder);
    classes.push_back(static_cast<int32_t>(place - folders.begin()));
    names.push_back(name);
  }
  auto owner = std::make_shared<const std::vector<int32_t>>(std::move(classes));
  ArrayHeader header{from, ElementType::I32, {static_cast<int64_t>(owner->size())}};
  auto data = std::make_shared<const Array>(header, std::as_bytes(std::span(*owner)), owner);
  SourceUse numbers = use;
  numbers.axes = "N";
  addPart(std::move(header), std::move(data), numbers);
}

static std::vector<ArrayHeader> inOrderOfSlices(std::vector<ArrayHeader> planes,
                                                const std::vector<std::string> &names) {
  std::vector<size_t> order(planes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](size_t i, size_t j) { return comesBefore(names[i], names[j]); });
  std::vector<ArrayHeader> slices;
  for (size_t i : order)
    slices.push_back(std::move(planes[i]));
  return slices;
}

static size_t bytesOf(const ArrayHeader &header) {
  return std::accumulate(
      header.shape.begin(), header.shape.end(), bytesOf(header.type),
      [](size_t bytes, int64_t extent) { return bytes * static_cast<size_t>(extent); });
}

/// A sample each; but planes of one size are one sample where the axes count no samples.
void Source::openImages(const SourceUse &use) {
  std::vector<ArrayHeader> headers;
  std::vector<std::string> images;
  for (const auto &[name, file] : imageFiles(from, use.images)) {
    headers.push_back(imageHeader(file));
    images.push_back(name);
    if (headers.back().type != headers.front().type)
      throw Error(ErrorCode::BadInput, "the images of a directory are of one type, but '" + file +
                                           "' is " + std::string(nameOf(headers.back().type)) +
                                           " and the first is " +
                                           std::string(nameOf(headers.front().type)));
  }
  ArrayHeader stack = headers.front();
  bool arePlanes = std::all_of(headers.begin(), headers.end(), [&](const ArrayHeader &header) {
    return header.shape[0] == 1 && header.shape == stack.shape;
  });
  stack.shape[0] = static_cast<int64_t>(headers.size());
  if (arePlanes && !axesOf(stack, use).first.starts_with('N')) {
    stack.path = from;
    addPart(stack, stacked(stack, inOrderOfSlices(std::move(headers), images)), use);
    return;
  }
  for (ArrayHeader &header : headers) {
    cache->announce(bytesOf(header));
    addPart(std::move(header), nullptr, use);
  }
  if (count == static_cast<int64_t>(images.size()))
    names = std::move(images);
}

void Source::addPart(ArrayHeader header, std::shared_ptr<const Array> data, const SourceUse &use) {
  Part part = makePart(std::move(header), use);
  part.data = std::move(data);
  part.first = count;
  count += part.count;
  parts.push_back(std::move(part));
}

std::shared_ptr<const Array> Source::dataOf(const Part &part) const {
  return part.data ? part.data : cache->get(part.header);
}

Source::Part Source::makePart(ArrayHeader header, const SourceUse &use) const {
  const std::string &stated = use.axes;
  auto [axes, shape] = axesOf(header, use);
  if (axes.size() != shape.size() || axes.empty())
    throw Error(ErrorCode::BadInput,
                "'" + header.path + "' has shape " + shapeText(shape) + ", but " + label +
                    " wants " +
                    (stated.empty() ? "as many dimensions as the model's input (" +
                                          std::to_string(use.inputRank) + "), or one " +
                                          (use.lacksChannels ? "more" : "less")
                                    : "axes " + stated));
  Part part{std::move(header), nullptr};
  part.axesAreFromMetadata = axes == part.header.axes;
  Extents fileStrides(axes.size(), 1);
  for (size_t i = axes.size() - 1; i > 0; --i)
    fileStrides[i - 1] = fileStrides[i] * shape[i];
  for (char axis : std::string_view("NCZYX")) {
    size_t at = axes.find(axis);
    if (at != std::string::npos && axis == 'N') {
      part.count = shape[at];
      part.sampleStride = fileStrides[at];
    } else if (at != std::string::npos) {
      part.shape.push_back(shape[at]);
      part.strides.push_back(fileStrides[at]);
    } else if (axis == 'C' && axes != "N") {
      part.shape.push_back(1);
      part.strides.push_back(0);
    }
  }
  if (std::any_of(axes.begin(), axes.end(), [&](char axis) {
        return std::string_view("NCZYX").find(axis) == std::string_view::npos ||
               std::count(axes.begin(), axes.end(), axis) != 1;
      }))
    throw Error(ErrorCode::BadInput,
                "axes '" + axes + "' of " + label + " are not distinct letters of N, C, Z, Y, X");
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    throw Error(ErrorCode::BadInput,
                "'" + part.header.path + "' (" + shapeText(part.header.shape) + ") holds no " +
                    (part.count == 0 ? "samples" : "elements") + "; give a file that has some");
  return part;
}

const Source::Part &Source::partOf(int64_t sample) const {
  auto behind = std::upper_bound(parts.begin(), parts.end(), sample,
                                 [](int64_t at, const Part &part) { return at < part.first; });
  return *std::prev(behind);
}

std::string Source::axesByMetadata(int64_t sample) const {
  const Part &part = partOf(sample);
  return part.axesAreFromMetadata ? part.header.axes : "";
}

std::vector<int64_t> Source::firstSamples() const {
  std::vector<int64_t> samples;
  for (const Part &part : parts)
    samples.push_back(part.first);
  return samples;
}

std::optional<int64_t> Source::otherShape(int64_t sample) const {
  for (const Part &part : parts)
    if (part.shape != partOf(sample).shape)
      return part.first;
  return std::nullopt;
}

/// The first element of an array of integers that is not `good`, if any.
template <typename Good>
std::optional<Source::Element> Source::findNotIn(const Array &data, Good &good) {
  return visitType(data.type(), [&](auto zero) -> std::optional<Element> {
    using T = decltype(zero);
    for (int64_t i = 0; i < data.elements(); ++i) {
      T value;
      std::memcpy(&value, data.bytes().data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
      if (!good(static_cast<double>(value)))
        return Element{0, i, static_cast<double>(value)};
    }
    return std::nullopt;
  });
}

template <typename Good> std::optional<Source::Element> Source::findNot(Good good) const {
  for (size_t part = 0; part < parts.size(); ++part)
    if (std::optional<Element> found = findNotIn(*dataOf(parts[part]), good)) {
      found->part = part;
      return found;
    }
  return std::nullopt;
}

bool Source::readAsBinaryMask() {
  if (!isInteger(type()))
    return false;
  bool has255 = false;
  notBinary = findNot([&](double value) {
    has255 |= value == 255;
    return value == 0 || value == 255;
  });
  binaryMask = !notBinary && has255;
  return binaryMask;
}

std::optional<Source::Outlier> Source::outlier(const ValueRange &range) const {
  if (binaryMask && range.holds(0) && range.holds(1))
    return std::nullopt; // all have been looked at
  std::optional<Element> wrong =
      findNot([&](double value) { return range.holds(value / (binaryMask ? 255 : 1)); });
  if (!wrong)
    return std::nullopt;
  bool wantsMask = range.low == 0 && range.high == 1;
  bool besideMask = wantsMask && notBinary && wrong->value == 255;
  Element shown = besideMask ? *notBinary : *wrong;
  const Part &part = parts[shown.part];
  int64_t within = part.sampleStride ? shown.at / part.sampleStride % part.count : 0;
  return Outlier{part.first + within, shown.value, besideMask};
}

std::string Source::place(int64_t sample) const {
  std::string text = "'" + from + "': sample " + std::to_string(sample);
  if (!names.empty())
    text += " (" + names[static_cast<size_t>(sample)] + ")";
  return text;
}

static bool areFinite(std::span<const float> values) {
  bool finite = true;
  for (float value : values)
    finite &= std::fabs(value) <= std::numeric_limits<float>::max();
  return finite;
}

void Source::refuseNonFinite(int64_t sample, std::span<const float> values) const {
  float value =
      *std::find_if(values.begin(), values.end(), [](float v) { return !areFinite({&v, 1}); });
  throw Error(ErrorCode::BadInput,
              place(sample) + " holds " +
                  (std::isnan(value) ? "nan"
                   : value > 0       ? "inf"
                                     : "-inf") +
                  (std::isinf(value) && type() == ElementType::F64
                       ? " (or a number too large for f32)"
                       : "") +
                  ": leave the sample out, or give such pixels a number, as numpy.nan_to_num does");
}

void Source::read(int64_t sample, const Box *part, Sample &into) const {
  const Part &file = partOf(sample);
  std::shared_ptr<const Array> data = dataOf(file);
  View view{type(), data->bytes(), data, (sample - file.first) * file.sampleStride};
  for (size_t dim = 0; dim < file.shape.size(); ++dim)
    view.axes.push_back({file.shape[dim], file.strides[dim], 0, file.shape[dim]});
  view.isMask = binaryMask;
  view.isHeld = holds(file);
  view.isWhole = true;
  if (part)
    view.cut(part->first, part->size);
  into.shape = view.shape();
  into.unread = std::move(view);
  if (isInteger(type()))
    return;
  into.settle();
  if (!areFinite(into.values))
    refuseNonFinite(sample, into.values);
}

std::vector<uint64_t> Source::heldArrays() const {
  std::vector<uint64_t> sizes;
  if (unsignedBits(type()) > 0)
    for (const Part &part : parts)
      if (holds(part))
        sizes.push_back(bytesOf(part.header));
  return sizes;
}

void Source::requireWhole() const {
  for (const Part &part : parts)
    if (part.data)
      part.data->requireWhole();
}

} // namespace dlc::rt
