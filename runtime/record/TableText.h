// Text that several reports share: cells of tables, and lists that stay short.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

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

/// "a, b, c and 4 more".
inline std::string listed(const std::vector<std::string> &items) {
  constexpr size_t shown = 6;
  std::string text;
  for (size_t i = 0; i < std::min(items.size(), shown); ++i)
    text += (i ? ", " : "") + items[i];
  return items.size() > shown ? text + " and " + std::to_string(items.size() - shown) + " more"
                              : text;
}

} // namespace dlc::rt
