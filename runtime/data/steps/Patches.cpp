#include "runtime/data/steps/Patches.h"

#include <algorithm>
#include <cmath>

namespace dlc::rt {

Box wholeBox(std::span<const int64_t> extents) {
  return {Extents(extents.size(), 0), {extents.begin(), extents.end()}};
}

DividedBox divideBox(const Box &box, double share, std::span<const int64_t> patch) {
  DividedBox parts{box, box};
  size_t axis = 0;
  for (size_t other = 1; other < box.size.size(); ++other) {
    int64_t room = box.size[axis] * patch[other], others = box.size[other] * patch[axis];
    if (others > room || (others == room && box.size[other] > box.size[axis]))
      axis = other;
  }
  auto held = static_cast<int64_t>(std::llround(share * static_cast<double>(box.size[axis])));
  parts.isRaised = held < patch[axis];
  if (parts.isRaised)
    held = std::min(patch[axis], box.size[axis]);
  parts.training.size[axis] -= held;
  parts.validation.size[axis] = held;
  parts.validation.first[axis] += box.size[axis] - held;
  return parts;
}

static bool holdsPatch(const Box &box, std::span<const int64_t> size) {
  return std::equal(size.begin(), size.end(), box.size.begin(), box.size.end(),
                    [](int64_t patch, int64_t extent) { return patch <= extent; });
}

int64_t patchesOf(const Box &box, std::span<const int64_t> size) {
  if (!holdsPatch(box, size))
    return 0;
  int64_t volume = 1, patch = 1;
  for (size_t dim = 0; dim < size.size(); ++dim) {
    volume *= box.size[dim];
    patch *= size[dim];
  }
  return volume / patch;
}

int64_t gridCells(const Box &box, std::span<const int64_t> size) {
  int64_t cells = holdsPatch(box, size) ? 1 : 0;
  for (size_t dim = 0; cells && dim < size.size(); ++dim)
    cells *= box.size[dim] / size[dim];
  return cells;
}

Box gridCell(const Box &box, std::span<const int64_t> size, int64_t cell) {
  Box result{box.first, {size.begin(), size.end()}};
  for (size_t dim = size.size(); dim-- > 0;) {
    int64_t cells = box.size[dim] / size[dim];
    result.first[dim] += cell % cells * size[dim];
    cell /= cells;
  }
  return result;
}

Box drawPatch(const Box &box, std::span<const int64_t> size, const Draw &draw) {
  Box result{box.first, {size.begin(), size.end()}};
  for (size_t dim = 0; dim < size.size(); ++dim)
    result.first[dim] += draw.below(dim, box.size[dim] - size[dim] + 1);
  return result;
}

} // namespace dlc::rt
