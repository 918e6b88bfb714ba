#include "runtime/predict/Symmetry.h"

#include <utility>

namespace dlc::rt {

std::vector<int64_t> turnedShape(std::vector<int64_t> shape, Symmetry symmetry) {
  if (symmetry.transposes)
    std::swap(shape[shape.size() - 2], shape.back());
  return shape;
}

/// Calls visit(offset, offset of where turned() puts it) for all elements.
template <typename Visit>
static void forEach(std::span<const int64_t> shape, Symmetry symmetry, Visit visit) {
  int64_t height = shape[shape.size() - 2], width = shape.back(), planes = 1;
  for (size_t dim = 0; dim + 2 < shape.size(); ++dim)
    planes *= shape[dim];
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        int64_t toY = symmetry.flipsY ? height - 1 - y : y;
        int64_t toX = symmetry.flipsX ? width - 1 - x : x;
        int64_t to = symmetry.transposes ? toX * height + toY : toY * width + toX;
        visit(static_cast<size_t>((plane * height + y) * width + x),
              static_cast<size_t>(plane * height * width + to));
      }
}

std::vector<float> turned(std::span<const float> values, std::span<const int64_t> shape,
                          Symmetry symmetry) {
  std::vector<float> result(values.size());
  forEach(shape, symmetry, [&](size_t from, size_t to) { result[to] = values[from]; });
  return result;
}

void addTurnedBack(std::span<const float> values, std::span<const int64_t> shape, Symmetry symmetry,
                   std::span<float> sum) {
  forEach(shape, symmetry, [&](size_t to, size_t from) { sum[to] += values[from]; });
}

} // namespace dlc::rt
