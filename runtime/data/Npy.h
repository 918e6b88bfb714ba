// Writing numpy's `.npy` (version 1.0, C order, little-endian).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dlc::rt {

/// Throws Error(Runtime) if the file cannot be written.
void writeNpy(const std::string &path, std::span<const int64_t> shape,
              std::span<const float> values);

} // namespace dlc::rt
