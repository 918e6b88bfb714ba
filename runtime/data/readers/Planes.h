// Interleaved pixels into planes, so that channels come before height and width.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace dlc::rt {

/// Of pixels of so many samples of a width that is known here, since there are millions of them.
template <size_t width>
void copyPlanes(std::span<const std::byte> pixels, size_t samples, std::byte *to) {
  size_t count = pixels.size() / (samples * width);
  for (size_t sample = 0; sample < samples; ++sample)
    for (size_t pixel = 0; pixel < count; ++pixel, to += width)
      std::memcpy(to, pixels.data() + (pixel * samples + sample) * width, width);
}

/// Appends one plane for each of the pixels' `samples`, which take `width` bytes each: a power of 2
/// up to 8.
inline void appendPlanes(std::span<const std::byte> pixels, size_t samples, size_t width,
                         std::vector<std::byte> &to) {
  size_t start = to.size();
  to.resize(start + pixels.size());
  auto *copy = width == 1   ? copyPlanes<1>
               : width == 2 ? copyPlanes<2>
               : width == 4 ? copyPlanes<4>
                            : copyPlanes<8>;
  copy(pixels, samples, to.data() + start);
}

} // namespace dlc::rt
