// Names for messages about a pattern that matches none. Header-only; any thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlc::rt {

/// The letters to change, add or remove until `pattern` matches `name`. `*` stands for any letters,
/// `?` for any one.
inline size_t patternDistance(std::string_view pattern, std::string_view name) {
  // By rows of the pattern: the distance of the letters so far to each beginning of the name.
  std::vector<size_t> row(name.size() + 1);
  for (size_t j = 0; j <= name.size(); ++j)
    row[j] = j;
  for (char letter : pattern) {
    std::vector<size_t> next(row.size());
    next[0] = row[0] + (letter == '*' ? 0 : 1);
    for (size_t j = 1; j < row.size(); ++j) {
      bool isSame = letter == '?' || letter == name[j - 1];
      next[j] = letter == '*'
                    ? std::min(row[j], next[j - 1])
                    : std::min({row[j - 1] + (isSame ? 0 : 1), row[j] + 1, next[j - 1] + 1});
    }
    row = std::move(next);
  }
  return row.back();
}

/// The three names that are nearest to the pattern, nearest first: "'a', 'b', 'c'".
inline std::string nearNames(std::string_view pattern, const std::vector<std::string> &names) {
  constexpr size_t shown = 3;
  std::vector<std::pair<size_t, size_t>> order; // distance, place
  for (const std::string &name : names)
    order.emplace_back(patternDistance(pattern, name), order.size());
  std::ranges::sort(order);
  std::string text;
  for (size_t i = 0; i < std::min(order.size(), shown); ++i)
    text += (i ? ", '" : "'") + names[order[i].second] + "'";
  return text;
}

} // namespace dlc::rt
