// Extents of arrays, and how messages write them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

using Extents = std::vector<int64_t>;

/// In a shape that is asked for: any.
inline constexpr int64_t anyExtent = -1;

/// "104 x 256 x 256", "1 x any x any"; "a scalar" for rank 0.
std::string shapeText(std::span<const int64_t> shape);

/// In nine digits.
std::string numberText(double value);

} // namespace dlc::rt
