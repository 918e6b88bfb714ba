// Interleaved pixels into planes, so that channels come before height and width.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace dlc::rt {

/// Appends one plane for each of the pixels' `samples`, which take `width` bytes each.
inline void appendPlanes(std::span<const std::byte> pixels, size_t samples, size_t width,
                         std::vector<std::byte> &to) {
  size_t start = to.size(), count = pixels.size() / (samples * width);
  to.resize(start + pixels.size());
  for (size_t pixel = 0; pixel < count; ++pixel)
    for (size_t sample = 0; sample < samples; ++sample)
      std::memcpy(to.data() + start + (sample * count + pixel) * width,
                  pixels.data() + (pixel * samples + sample) * width, width);
}

} // namespace dlc::rt
