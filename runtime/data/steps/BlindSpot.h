// blind_spot: the manipulation of Noise2Void (Krull et al. 2019), which makes of one image an input
// whose chosen pixels are replaced, the target, and the mask of those pixels.
#pragma once

#include "runtime/data/steps/Draw.h"
#include "runtime/data/steps/Geometry.h"

#include <array>

namespace dlc::rt {

enum class SpotReplacement : uint8_t { UniformWithCenter, Uniform, Normal, Mean, Median };

struct BlindSpot {
  double percent; // of the pixels
  int64_t radius; // neighbours lie within it along each axis
  SpotReplacement replacement;
  double sigma;         // of Normal, in the units that the image has
  bool squareRootBoxes; // box = compat: the rounded edge of a plane's boxes, in volumes, too
  std::vector<int64_t>
      structure; // structN2V: 1 where a spot's neighbours along the axis are hidden
  char axis;     // X, Y or Z
};

/// True if what replaces a pixel is always another one of the image.
bool isOfElements(const BlindSpot &step);

/// The edge, in pixels, of the boxes that hold one spot each: (100 / percent)^(1 / axes), of compat
/// the square root, rounded.
double boxEdge(const BlindSpot &step, size_t axes);

/// Throws Error(BadInput) if an image has fewer pixels than one box, or lacks the structure's axis.
void checkSpots(const BlindSpot &step, std::span<const int64_t> shape);

/// Image, target and mask, of the sample's shape. Channels have spots of their own. Without
/// `hides`, as for predictions, there are none.
std::array<Sample, 3> makeBlindSpots(const BlindSpot &step, Sample sample, const Draw &draw,
                                     bool hides);

} // namespace dlc::rt
