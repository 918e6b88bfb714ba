// Cuts images into tiles of the size that a program takes, and puts its results together.
//
// Tiles overlap, start at multiples of the network's total stride, and lie flush with the image's
// edges, so that every pixel kept is what the program would compute of the whole image. Beyond an
// edge, where a tile does not fit, the image is mirrored. Immutable; any thread.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Error.h"
#include "runtime/data/steps/Sample.h"

#include <span>
#include <vector>

namespace dlc::rt {

/// One tile along one dimension, in pixels of the image: it starts at `start`, and of its result
/// [keepBegin, keepEnd) counts.
struct TileSpan {
  int64_t start = 0, keepBegin = 0, keepEnd = 0;
  bool operator==(const TileSpan &) const = default;
};

/// Tiles of `tile` pixels that cover `extent`. `overlap` and `alignment` as in the artifact; an
/// empty result says that the tiles have no interior.
std::vector<TileSpan> tilesAlong(int64_t extent, int64_t tile, int64_t overlap, int64_t alignment);

/// The spatial extents of a shape: the last ones, perhaps behind the batch and channels.
std::vector<int64_t> spatialExtents(std::span<const int64_t> shape, const artifact::Tiling &tiling);

/// A tile, one span per spatial dimension.
using Tile = std::vector<TileSpan>;

class Tiling {
public:
  /// The program has one tile size. Without the artifact's `tiling` images have that size.
  Tiling(const artifact::Tiling *planned, std::vector<int64_t> tileExtents);

  /// Covers an image. Throws Error(BadInput) if it cannot.
  std::vector<Tile> tiles(std::span<const int64_t> extents) const;
  /// The part of a sample [channels, spatial...] or [spatial...] under a tile.
  std::vector<float> cut(const Sample &sample, const Tile &tile) const;
  /// An output's shape [channels, spatial...] or [spatial...] for an image of `extents`, if it is
  /// `tileShape` for a tile.
  std::vector<int64_t> outputShape(std::span<const int64_t> tileShape,
                                   std::span<const int64_t> extents) const;
  /// Writes what counts of a tile's result of `tileShape` to its place in the image's.
  void paste(std::span<const float> result, std::span<const int64_t> tileShape, const Tile &tile,
             std::span<float> image, std::span<const int64_t> imageShape) const;

private:
  Error noInterior(std::span<const int64_t> extents) const;
  std::string setting(std::span<const int64_t> extents) const;

  std::vector<std::string> parameters;           // that set the tile's extents, or empty
  std::vector<int64_t> tile, overlap, alignment; // empty overlap: one size
};

} // namespace dlc::rt
