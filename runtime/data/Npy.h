// Writing numpy's `.npy` (version 1.0, C order, little-endian).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dlc::rt {

/// The file appears whole or not at all. Throws Error(Runtime) if it cannot be written.
void writeNpy(const std::string &path, std::span<const int64_t> shape,
              std::span<const float> values);

} // namespace dlc::rt
