// How messages name amounts of a device's memory.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace dlc::rt {

/// "1.50 GiB".
inline std::string gibibytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

} // namespace dlc::rt
