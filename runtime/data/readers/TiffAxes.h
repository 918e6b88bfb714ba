// What programs of microscopy write into a TIFF file's description: the axes that its pages count.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dlc::rt {

/// A letter of N C Z for each axis that the pages count, slowest first, and its extent; none if the
/// description says nothing of them. Time counts samples, N.
struct PageAxes {
  std::string letters;
  std::vector<int64_t> extents;
};

/// From the description of the first page, by ImageJ or in OME's XML. `samples`: of a pixel. Throws
/// Error(BadInput) where what it says is not what the file's `pages` hold.
PageAxes pageAxes(const std::string &path, std::string_view description, int64_t pages,
                  int64_t samples);

} // namespace dlc::rt
