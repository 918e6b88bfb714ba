// How messages name amounts of memory.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace dlc::rt {

/// "1.50 GiB", "20.1 MiB" or "0.5 KiB".
inline std::string bytesText(uint64_t bytes) {
  auto amount = static_cast<double>(bytes);
  char text[32];
  if (bytes >= 1U << 30)
    std::snprintf(text, sizeof text, "%.2f GiB", amount / (1U << 30));
  else if (bytes >= 1U << 20)
    std::snprintf(text, sizeof text, "%.1f MiB", amount / (1U << 20));
  else
    std::snprintf(text, sizeof text, "%.1f KiB", amount / 1024);
  return text;
}

} // namespace dlc::rt
