// Grey 8-bit PNG files.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dlc::rt {

/// `pixels` row by row. The file appears whole or not at all. Throws Error(Runtime) if it cannot be
/// written.
void writePng(const std::string &path, int64_t height, int64_t width,
              std::span<const uint8_t> pixels);

} // namespace dlc::rt
