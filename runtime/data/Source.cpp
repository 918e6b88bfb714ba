#include "runtime/data/Source.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

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

Source::Source(std::string name, Array array, std::string axes, size_t inputRank)
    : label(std::move(name)), data(std::move(array)) {
  bool stated = !axes.empty();
  if (!stated)
    axes = axesByRank(data.rank(), inputRank);
  if (axes.size() != data.rank() || axes.empty())
    throw Error(ErrorCode::BadInput,
                "'" + data.path() + "' has shape " + shapeText(data.shape()) + ", but " + label +
                    " wants " +
                    (stated ? "axes " + axes
                            : "as many dimensions as the model's input (" +
                                  std::to_string(inputRank) + "), or one less"));
  std::vector<int64_t> fileStrides(axes.size(), 1);
  for (size_t i = axes.size() - 1; i > 0; --i)
    fileStrides[i - 1] = fileStrides[i] * data.shape()[i];
  for (char axis : std::string_view("NCZYX")) {
    size_t at = axes.find(axis);
    if (at != std::string::npos && axis == 'N') {
      count = data.shape()[at];
      sampleStride = fileStrides[at];
    } else if (at != std::string::npos) {
      shape.push_back(data.shape()[at]);
      strides.push_back(fileStrides[at]);
    } else if (axis == 'C' && axes != "N") {
      shape.push_back(1);
      strides.push_back(0);
    }
  }
  if (std::any_of(axes.begin(), axes.end(), [&](char axis) {
        return std::string_view("NCZYX").find(axis) == std::string_view::npos ||
               std::count(axes.begin(), axes.end(), axis) != 1;
      }))
    throw Error(ErrorCode::BadInput,
                "axes '" + axes + "' of " + label + " are not distinct letters of N, C, Z, Y, X");
  if (data.elements() == 0)
    throw Error(ErrorCode::BadInput, "'" + data.path() + "' (" + shapeText(data.shape()) +
                                         ") holds no " + (count == 0 ? "samples" : "elements") +
                                         "; give a file that has some");
  samplesFirst = axes.front() == 'N';
}

/// The first element of an array of integers that is not `good`, if any.
template <typename Good> static std::optional<int64_t> findNot(const Array &data, Good good) {
  return visitType(data.type(), [&](auto zero) -> std::optional<int64_t> {
    using T = decltype(zero);
    for (int64_t i = 0; i < data.elements(); ++i) {
      T value;
      std::memcpy(&value, data.bytes().data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
      if (!good(static_cast<double>(value)))
        return i;
    }
    return std::nullopt;
  });
}

bool Source::readAsBinaryMask() {
  if (!isInteger(data.type()))
    return false;
  bool has255 = false;
  notBinary = findNot(data, [&](double value) {
    has255 |= value == 255;
    return value == 0 || value == 255;
  });
  binaryMask = !notBinary && has255;
  return binaryMask;
}

std::optional<Source::Outlier> Source::outlier(const ValueRange &range) const {
  std::optional<int64_t> wrong =
      findNot(data, [&](double value) { return range.holds(value / (binaryMask ? 255 : 1)); });
  if (!wrong)
    return std::nullopt;
  bool wantsMask = range.low == 0 && range.high == 1;
  bool besideMask = wantsMask && notBinary && data.at(*wrong) == 255;
  int64_t at = besideMask ? *notBinary : *wrong;
  return Outlier{sampleStride ? at / sampleStride % count : 0, data.at(at), besideMask};
}

const std::vector<std::string> &Source::sampleNames() const {
  static const std::vector<std::string> none;
  return samplesFirst ? data.names : none;
}

std::string Source::place(int64_t sample) const {
  std::string text = "'" + data.path() + "': sample " + std::to_string(sample);
  if (!sampleNames().empty())
    text += " (" + sampleNames()[static_cast<size_t>(sample)] + ")";
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
                  (std::isinf(value) && data.type() == ElementType::F64
                       ? " (or a number too large for f32)"
                       : "") +
                  ": leave the sample out, or give such pixels a number, as numpy.nan_to_num does");
}

void Source::read(int64_t sample, Sample &into) const {
  int64_t elements = 1;
  for (int64_t extent : shape)
    elements *= extent;
  into.shape = shape;
  into.values.resize(static_cast<size_t>(elements));
  int64_t base = sample * sampleStride;
  size_t rank = shape.size();
  int64_t inner = rank ? shape.back() : 1;
  int64_t innerStride = rank ? strides.back() : 1;
  std::vector<int64_t> index(rank, 0);
  for (int64_t next = 0; next < elements; next += inner) {
    int64_t outer = base;
    for (size_t dim = 0; dim + 1 < rank; ++dim)
      outer += index[dim] * strides[dim];
    data.read(
        outer, innerStride,
        std::span(into.values).subspan(static_cast<size_t>(next), static_cast<size_t>(inner)));
    for (size_t dim = rank; dim > 1 && ++index[dim - 2] == shape[dim - 2]; --dim)
      index[dim - 2] = 0;
  }
  if (!isInteger(data.type()) && !areFinite(into.values))
    refuseNonFinite(sample, into.values);
  if (binaryMask)
    for (float &value : into.values)
      value = value != 0 ? 1.0f : 0.0f;
}

} // namespace dlc::rt
