// patches(size): parts of volumes as samples.
//
// A volume is what a file holds of one sample. Its last share along one axis may be kept apart for
// validation. Training takes parts at random places, evaluation a grid.
#pragma once

#include "runtime/data/steps/Draw.h"
#include "runtime/data/steps/Geometry.h"

namespace dlc::rt {

struct Patches {
  Extents size; // one entry for all spatial axes, or one for each
};

Box wholeBox(std::span<const int64_t> extents);

/// round(share * n) of the n places along one axis, the last ones, are for validation, but at least
/// as many as a patch has. It is the axis that has room for the most patches, of several the
/// longest one, of several such the first.
struct DividedBox {
  Box training, validation;
  bool isRaised = false; // to a patch's extent
};
DividedBox divideBox(const Box &box, double share, std::span<const int64_t> patch);

/// floor(volume / patch), as many samples as training makes of the box in an epoch. 0 if it holds
/// no patch.
int64_t patchesOf(const Box &box, std::span<const int64_t> size);

/// Patches side by side from the first corner on; what is left behind them is in none.
int64_t gridCells(const Box &box, std::span<const int64_t> size);
Box gridCell(const Box &box, std::span<const int64_t> size, int64_t cell);

Box drawPatch(const Box &box, std::span<const int64_t> size, const Draw &draw);

} // namespace dlc::rt
