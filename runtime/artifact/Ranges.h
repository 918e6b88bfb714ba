// Which numbers of the blocks train and data make sense: one table for the compiler, which refuses
// others in text, and for the verifier of artifacts. Header-only and free of dependencies.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

namespace dlc::rt {

/// From `low` to `high`, both inside unless open. What is not a number is in no range.
struct Range {
  double low = -std::numeric_limits<float>::max(), high = std::numeric_limits<float>::max();
  bool isLowOpen = false, isHighOpen = false;

  constexpr bool contains(double value) const {
    return (isLowOpen ? value > low : value >= low) && (isHighOpen ? value < high : value <= high);
  }
  /// "from 0 to below 1", "above 0", "finite"
  std::string text() const {
    constexpr double most = std::numeric_limits<float>::max();
    if (low == -most && high == most)
      return "finite";
    auto number = [](double value) { // exact for what the table holds
      return std::to_string(static_cast<long long>(value));
    };
    if (high == most)
      return (isLowOpen ? "finite and above " : "finite and at least ") + number(low);
    return (isLowOpen ? "above " : "from ") + number(low) + (isHighOpen ? " to below " : " to ") +
           number(high);
  }
};

namespace ranges {
inline constexpr double mostCount = 1e9;
inline constexpr Range finite{};
inline constexpr Range notNegative{0};
inline constexpr Range positive{0, Range{}.high, /*isLowOpen=*/true};
inline constexpr Range share{0, 1, false, /*isHighOpen=*/true};
inline constexpr Range count{0, mostCount};
inline constexpr Range positiveCount{1, mostCount};
inline constexpr Range threads{1, 1024};
/// Numbers of ranks, and of batches that stand for as many ranks.
inline constexpr Range ranks{1, 4096};
} // namespace ranges

/// The range of an argument of a call in the blocks train and data: an optimizer, a schedule entry,
/// early_stop, a data step or the settings of updates. For a list, of each of its numbers.
constexpr Range rangeOf(std::string_view call, std::string_view argument) {
  struct Entry {
    std::string_view call, argument; // an empty call: any
    Range range;
  };
  constexpr Entry table[] = {
      {"", "lr", ranges::notNegative},
      {"", "momentum", ranges::share},
      {"", "beta1", ranges::share},
      {"", "beta2", ranges::share},
      {"rmsprop", "alpha", ranges::share},
      {"", "eps", ranges::notNegative},
      {"", "weight_decay", ranges::notNegative},
      {"warm_up", "epochs", ranges::count},
      {"warm_up", "steps", ranges::count},
      {"step", "at", ranges::count},
      {"", "factor", ranges::notNegative},
      {"cosine", "floor", ranges::notNegative},
      {"exponential", "gamma", ranges::notNegative},
      {"poly", "power", ranges::notNegative},
      {"", "patience", ranges::count},
      {"normalize", "std", ranges::positive},
      {"normalize", "percentile", {0, 100}},
      {"", "percent", {0, 100, /*isLowOpen=*/true}},
      {"", "radius", {1, 1024}},
      {"", "sigma", ranges::notNegative},
      {"", "struct", {0, 1}},
      {"", "size", ranges::positiveCount},
      {"", "padding", ranges::count},
      {"", "scale", {0, 1, /*isLowOpen=*/true}},
      {"", "ratio", ranges::positive},
      {"", "delta", ranges::notNegative},
      {"gamma", "low", ranges::positive},
      {"gamma", "high", ranges::positive},
      {"contrast", "low", ranges::notNegative},
      {"contrast", "high", ranges::notNegative},
      {"noise", "std", ranges::notNegative},
      {"", "classes", ranges::positiveCount},
      {"updates", "lr_scale", ranges::notNegative},
      {"updates", "clip_norm", ranges::positive},
      {"updates", "ema", {0, 1, /*isLowOpen=*/true, /*isHighOpen=*/true}},
  };
  for (const Entry &entry : table)
    if ((entry.call.empty() || entry.call == call) && entry.argument == argument)
      return entry.range;
  return ranges::finite;
}

} // namespace dlc::rt
