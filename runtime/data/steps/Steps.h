// The steps of a data chain: structs in a variant, applied by pure functions of samples and a draw.
//
// A random step makes one draw for all members of its chain, from (seed, epoch, position in the
// epoch) alone. Immutable once statistics are set; may be used from any thread.
#pragma once

#include "runtime/artifact/artifact_generated.h"
#include "runtime/data/steps/BlindSpot.h"
#include "runtime/data/steps/Draw.h"
#include "runtime/data/steps/Geometry.h"
#include "runtime/data/steps/Normalization.h"
#include "runtime/data/steps/Patches.h"

#include <string>
#include <variant>

namespace dlc::rt {

/// Mirrors each spatial axis, or those that the letters of ZYX name, with probability 1/2.
struct Flip {
  std::string axes;
};

/// 0 to 3 quarter turns in the plane of the last two axes, equally likely.
struct Rotate90 {};

// A size has one entry for all spatial axes, or one for each.

/// The centre, or with `isRandom` a place drawn in training; `padding` zeros stand on every side.
struct Crop {
  Extents size;
  int64_t padding = 0;
  bool isRandom = false;
};

/// Linear with half-pixel centres; of categories the nearest.
struct Resize {
  Extents size;
};

/// The largest image of the same ratio that fits into `size`, centred in zeros.
struct ResizePad {
  Extents size;
};

/// torchvision's RandomResizedCrop: a box of a drawn share of the area and a drawn ratio of width
/// to height, resized; after ten tries that do not fit, the centre.
struct RandomResizedCrop {
  Extents size;
  double scale[2], ratio[2];
};

// What follows leaves categories as they are.

/// Adds a draw of [-delta, delta].
struct Brightness {
  double delta;
};

/// Scales the distance from the sample's mean by a draw of [low, high].
struct Contrast {
  double low, high;
};

/// Raises the sample, scaled from its own range to [0, 1] and back, to a drawn power.
struct Gamma {
  double low, high;
};

/// Adds normal noise to each element.
struct Noise {
  double deviation;
};

/// Classes 0..classes - 1 become as many channels of 0 and 1.
struct OneHot {
  int64_t classes;
};

using DataStep = std::variant<NormalizePerImage, NormalizePercentile, NormalizeChannels, Flip,
                              Rotate90, Crop, Resize, ResizePad, RandomResizedCrop, Brightness,
                              Contrast, Gamma, Noise, OneHot, Patches, BlindSpot>;

/// Throws Error(Artifact) for a step that this runtime does not know.
DataStep makeStep(const artifact::CallT &call);

/// True if the elements behind the step are elements of the sample, or zeros that it adds.
bool keepsValues(const DataStep &step, bool isCategorical);

/// True if each element behind the step is one of the sample, whatever the values mean; or a zero
/// that it adds, but `noZeros`. Of blind_spot's three results the first two are meant.
bool movesValues(const DataStep &step, bool noZeros);

bool isNormalize(const DataStep &step);
/// True if what it does depends on the sample's values; then all channels are treated alike.
bool measuresSample(const DataStep &normalize);
/// What such a step does to the sample.
Normalization normalizationOf(const DataStep &step, const Sample &sample);

/// How many outputs the steps make of so many inputs: blind_spot makes three of one. Throws
/// Error(Artifact) if it stands behind another number.
size_t outputsOf(const std::vector<DataStep> &steps, size_t inputs);

/// One extent per spatial axis of the images. Throws Error(BadInput) if the size has another
/// number.
Extents sizeFor(const DataStep &step, const Extents &size, const Extents &shape);

/// The shape behind the step. Throws Error(BadInput) for samples that the step cannot take.
Extents resultShape(const DataStep &step, const Extents &shape, Use use);

/// Throws Error(BadInput) if a step cuts parts of members that differ in size: they would not be
/// the same parts.
void requireOneSize(const DataStep &step, std::span<const Extents> members);

/// Applies a step to the members of a chain, whose shapes it takes. Members without values are not
/// needed and stay so.
void applyStep(const DataStep &step, std::vector<Sample> &members, const Draw &draw, Use use);

} // namespace dlc::rt
