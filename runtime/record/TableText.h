// Cells of the profile's tables.
#pragma once

#include <cstdio>
#include <string>

namespace dlc::rt {

template <typename... Values> std::string format(const char *pattern, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

/// Ten columns wide; a dash stands for what there is none of.
inline std::string cell(double value, const char *pattern) {
  return format("%10s", value > 0 ? format(pattern, value).c_str() : "-");
}

} // namespace dlc::rt
