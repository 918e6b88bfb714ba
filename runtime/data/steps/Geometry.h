// Steps that move the elements of a sample, or compute them from neighbours: cut, resample, mirror,
// turn. All work on the spatial axes, those behind the channels.
#pragma once

#include "runtime/data/steps/Extents.h"
#include "runtime/data/steps/Sample.h"

namespace dlc::rt {

/// A part of an image, by its spatial axes.
struct Box {
  Extents first, size;
};

/// The spatial extents of a shape: all but the channels.
inline std::span<const int64_t> spatialOf(std::span<const int64_t> shape) {
  return shape.subspan(shape.empty() ? 0 : 1);
}

/// The box from `first` on, of `size`; zeros where it reaches beyond the sample.
void cut(Sample &sample, std::span<const int64_t> first, std::span<const int64_t> size);

/// Linear with half-pixel centres, without antialiasing; the nearest element of categories.
void resample(Sample &sample, std::span<const int64_t> size);

void mirror(Sample &sample, size_t dim);

/// Counterclockwise in the plane of the last two axes, as numpy.rot90; these are equally long.
void quarterTurn(Sample &sample);

} // namespace dlc::rt
