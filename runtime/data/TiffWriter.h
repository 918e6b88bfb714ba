// TIFF files that ImageJ opens as stacks.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dlc::rt {

enum class TiffPixels : uint8_t { F32, U8, U16 };

/// Extents of a row-major [frames, channels, slices, height, width].
struct TiffStack {
  int64_t frames = 1, channels = 1, slices = 1, height = 1, width = 1;
};

/// Uncompressed grey pages in ImageJ's order (channels fastest, then slices, then frames), with the
/// ImageDescription by which ImageJ tells them apart. Integer pixels show `black` to `white` as 0
/// to their greatest value; f32 pixels are stored as they are, and ImageJ displays that range. The
/// file appears whole or not at all. Throws Error(Runtime) if it cannot be written.
void writeTiff(const std::string &path, const TiffStack &stack, std::span<const float> values,
               TiffPixels pixels, float black, float white);

} // namespace dlc::rt
