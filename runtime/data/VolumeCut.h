// Where volumes are cut into patches, and which part of each is for validation.
//
// Training takes patches at random places of its part, evaluation the cells of a grid. Immutable
// once the volumes are divided.
#pragma once

#include "runtime/data/steps/Patches.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace dlc::rt {

class VolumeCut {
public:
  /// `volumes`: their extents, without channels.
  VolumeCut(Extents patch, std::vector<Extents> volumes)
      : patch(std::move(patch)), volumes(std::move(volumes)) {}

  /// Keeps a share of each volume apart, or nothing. Returns the samples of an epoch: each volume
  /// as often as its part for training has room for patches. Throws Error(BadInput) where a part
  /// holds no patch, naming the volume's `place`; notes where the first share was raised to one.
  std::vector<int64_t> divide(double share, const std::function<std::string(int64_t)> &place,
                              std::vector<std::string> &notes);

  const Extents &extents(int64_t volume) const { return volumes[static_cast<size_t>(volume)]; }
  Box trainingPart(int64_t volume) const { return parts(volume).training; }
  Box drawPatch(int64_t volume, const Draw &draw) const {
    return rt::drawPatch(trainingPart(volume), patch, draw);
  }

  /// Of the grids over all parts for validation, or over all volumes where nothing is kept apart.
  int64_t cells() const;
  /// The volume of a cell, and its place there.
  std::pair<int64_t, Box> cell(int64_t number) const;

private:
  DividedBox parts(int64_t volume) const;
  int64_t cellsOf(int64_t volume) const { return gridCells(parts(volume).validation, patch); }
  [[noreturn]] void refuse(int64_t volume, const Box &part, const std::string &purpose,
                           const std::string &place) const;

  Extents patch;
  std::vector<Extents> volumes;
  double keptApart = 0;
};

} // namespace dlc::rt
