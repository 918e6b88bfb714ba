#include "runtime/data/steps/View.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace dlc::rt {

template <typename T> View View::of(std::vector<T> values, const Extents &shape) {
  View view;
  auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  view.type = std::is_same_v<T, float>      ? ElementType::F32
              : std::is_same_v<T, uint16_t> ? ElementType::U16
                                            : ElementType::U8;
  view.bytes = std::as_bytes(std::span(*owner));
  view.owner = std::move(owner);
  for (int64_t extent : shape)
    view.axes.push_back({extent, 1, 0, extent});
  for (size_t dim = view.axes.size(); dim-- > 1;)
    view.axes[dim - 1].stride = view.axes[dim].stride * view.axes[dim].extent;
  return view;
}

template View View::of(std::vector<float>, const Extents &);
template View View::of(std::vector<uint8_t>, const Extents &);
template View View::of(std::vector<uint16_t>, const Extents &);

Extents View::shape() const {
  Extents shape;
  for (const Axis &axis : axes)
    shape.push_back(axis.extent);
  return shape;
}

size_t View::elements() const {
  int64_t elements = 1;
  for (const Axis &axis : axes)
    elements *= axis.extent;
  return static_cast<size_t>(elements);
}

bool View::isFull() const {
  return std::ranges::all_of(axes,
                             [](const Axis &axis) { return axis.high - axis.low == axis.extent; });
}

bool View::isEmpty() const {
  return std::ranges::any_of(axes, [](const Axis &axis) { return axis.low == axis.high; });
}

size_t View::offsetOf(std::span<const int64_t> at) const {
  int64_t offset = 0;
  for (size_t dim = 0; dim < axes.size(); ++dim)
    offset = offset * axes[dim].extent + at[dim];
  return static_cast<size_t>(offset);
}

View View::zeros() const {
  View result = *this;
  for (Axis &axis : result.axes)
    axis.low = axis.high = 0;
  result.isMask = result.isWhole = false;
  result.scaling = nullptr;
  result.spots.clear();
  return result;
}

void View::scale(Scaling by) {
  isWhole = false;
  for (Spot &spot : spots)
    spot.value = by.applied(spot.value, static_cast<size_t>(spot.at.front()));
  scaling = std::make_shared<const Scaling>(std::move(by));
}

//===- Moves ----------------------------------------------------------------------------------===//

void View::cut(std::span<const int64_t> corner, std::span<const int64_t> size) {
  isWhole = false;
  for (size_t dim = 0; dim < size.size(); ++dim) {
    Axis &axis = axes[dim + 1];
    first += corner[dim] * axis.stride;
    axis.extent = size[dim];
    axis.low = std::clamp<int64_t>(axis.low - corner[dim], 0, size[dim]);
    axis.high = std::clamp<int64_t>(axis.high - corner[dim], axis.low, size[dim]);
  }
  std::erase_if(spots, [&](Spot &spot) {
    bool isCutOff = false;
    for (size_t dim = 0; dim < size.size(); ++dim) {
      spot.at[dim + 1] -= corner[dim];
      isCutOff |= spot.at[dim + 1] < 0 || spot.at[dim + 1] >= size[dim];
    }
    return isCutOff;
  });
}

void View::mirror(size_t dim) {
  isWhole = false;
  Axis &axis = axes[dim];
  first += (axis.extent - 1) * axis.stride;
  axis = {axis.extent, -axis.stride, axis.extent - axis.high, axis.extent - axis.low};
  for (Spot &spot : spots)
    spot.at[dim] = axis.extent - 1 - spot.at[dim];
}

void View::quarterTurn() {
  mirror(axes.size() - 1);
  std::swap(axes[axes.size() - 2], axes.back());
  for (Spot &spot : spots)
    std::swap(spot.at[axes.size() - 2], spot.at[axes.size() - 1]);
}

//===- Elements -------------------------------------------------------------------------------===//

namespace {

/// Reads what an array of From has for a view as elements of To.
template <typename From, typename To> class Reader {
public:
  Reader(const View &view, std::byte *out) : view(view), out(out) {}

  void run() {
    if (!view.isFull())
      std::memset(out, 0, view.elements() * sizeof(To));
    visit(0, view.first, 0);
  }

private:
  /// Along the dimensions from `dim` on.
  void visit(size_t dim, int64_t from, int64_t to) {
    constexpr View::Axis one{1, 0, 0, 1};
    size_t left = view.axes.size() - dim;
    if (left <= 2)
      return readPlane(left == 2 ? view.axes[dim] : one, left ? view.axes.back() : one, from, to);
    const View::Axis &axis = view.axes[dim];
    int64_t inner = 1;
    for (size_t behind = dim + 1; behind < view.axes.size(); ++behind)
      inner *= view.axes[behind].extent;
    for (int64_t i = axis.low; i < axis.high; ++i)
      visit(dim + 1, from + i * axis.stride, to + i * inner);
  }

  void readPlane(const View::Axis &row, const View::Axis &column, int64_t from, int64_t to) {
    constexpr int64_t strip = 16; // rows whose lines stay in the cache
    if (std::abs(column.stride) > std::abs(row.stride) && row.high - row.low > 1) {
      for (int64_t top = row.low; top < row.high; top += strip)
        readStrip({row.extent, row.stride, top, std::min(top + strip, row.high)}, column, from, to);
      return;
    }
    for (int64_t r = row.low; r < row.high; ++r) {
      int64_t in = from + r * row.stride, into = to + r * column.extent;
      if (column.stride == 1) // in vectors
        readRow(column, in, into, std::integral_constant<int64_t, 1>());
      else if (column.stride == -1)
        readRow(column, in, into, std::integral_constant<int64_t, -1>());
      else
        readRow(column, in, into, column.stride);
    }
  }

  void readStrip(View::Axis row, View::Axis column, int64_t from, int64_t to) {
    const std::byte *source = view.bytes.data();
    std::byte *target = out;
    for (int64_t i = column.low; i < column.high; ++i)
      for (int64_t r = row.low; r < row.high; ++r)
        put(target, to + r * column.extent + i, source, from + r * row.stride + i * column.stride);
  }

  template <typename Stride>
  void readRow(View::Axis column, int64_t from, int64_t to, Stride stride) {
    const std::byte *source = view.bytes.data();
    std::byte *target = out;
    for (int64_t i = column.low; i < column.high; ++i)
      put(target, to + i, source, from + i * stride);
  }

  static void put(std::byte *__restrict target, int64_t to, const std::byte *__restrict source,
                  int64_t from) {
    From element; // files promise no alignment
    std::memcpy(&element, source + from * int64_t{sizeof(From)}, sizeof(From));
    To converted;
    if constexpr (std::is_integral_v<From> && std::is_integral_v<To>)
      converted = static_cast<To>(element);
    else
      converted = static_cast<To>(static_cast<float>(element));
    std::memcpy(target + to * int64_t{sizeof(To)}, &converted, sizeof(To));
  }

  const View &view;
  std::byte *out;
};

/// What is not 0 becomes 1.
template <typename T> void countAsOne(std::span<std::byte> out, size_t elements) {
  for (size_t i = 0; i < elements; ++i) {
    T value;
    std::memcpy(&value, out.data() + i * sizeof(T), sizeof(T));
    value = value != 0 ? T{1} : T{0};
    std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
  }
}

/// Scales what the array has of a view whose elements are read.
class Scaler {
public:
  Scaler(const View &view, std::byte *values) : view(view), values(values) {}

  void run() {
    const View::Axis &channels = view.axes.front();
    size_t each = view.elements() / static_cast<size_t>(channels.extent);
    for (int64_t channel = channels.low; channel < channels.high; ++channel) {
      shift = view.scaling->shift[static_cast<size_t>(channel)];
      scale = view.scaling->scale[static_cast<size_t>(channel)];
      visit(1, static_cast<size_t>(channel) * each, each);
    }
  }

private:
  /// Along the dimensions from `dim` on, of so many elements from `first` on.
  void visit(size_t dim, size_t first, size_t count) {
    if (dim == view.axes.size())
      return apply(first, count);
    const View::Axis &axis = view.axes[dim];
    size_t inner = count / static_cast<size_t>(axis.extent);
    auto low = static_cast<size_t>(axis.low), high = static_cast<size_t>(axis.high);
    if (dim + 1 == view.axes.size())
      return apply(first + low, high - low);
    for (size_t i = low; i < high; ++i)
      visit(dim + 1, first + i * inner, inner);
  }

  void apply(size_t first, size_t count) const { // in vectors
    std::byte *elements = values + first * sizeof(float);
    float less = shift, times = scale;
    for (size_t i = 0; i < count; ++i) {
      float value;
      std::memcpy(&value, elements + i * sizeof(float), sizeof(float));
      value = (value - less) * times;
      std::memcpy(elements + i * sizeof(float), &value, sizeof(float));
    }
  }

  const View &view;
  std::byte *values;
  float shift = 0, scale = 1;
};

} // namespace

float View::element(std::span<const int64_t> at) const {
  int64_t from = first;
  for (size_t dim = 0; dim < axes.size(); ++dim) {
    if (at[dim] < axes[dim].low || at[dim] >= axes[dim].high)
      return 0;
    from += at[dim] * axes[dim].stride;
  }
  float value = visitType(type, [&](auto zero) {
    auto found = zero;
    std::memcpy(&found, bytes.data() + from * int64_t{sizeof(found)}, sizeof(found));
    return static_cast<float>(found);
  });
  if (isMask)
    value = value != 0 ? 1.0F : 0.0F;
  return scaling ? scaling->applied(value, static_cast<size_t>(at.front())) : value;
}

template <typename T> void View::read(std::span<std::byte> out) const {
  visitType(type, [&](auto zero) { Reader<decltype(zero), T>(*this, out.data()).run(); });
  if (isMask)
    countAsOne<T>(out, elements());
  if constexpr (std::is_same_v<T, float>)
    if (scaling)
      Scaler(*this, out.data()).run();
  for (const Spot &spot : spots) {
    T value = static_cast<T>(spot.value);
    std::memcpy(out.data() + offsetOf(spot.at) * sizeof(T), &value, sizeof(T));
  }
}

template void View::read<float>(std::span<std::byte>) const;
template void View::read<uint8_t>(std::span<std::byte>) const;
template void View::read<uint16_t>(std::span<std::byte>) const;

} // namespace dlc::rt
