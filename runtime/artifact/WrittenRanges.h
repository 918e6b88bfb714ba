// Which bytes of a buffer have been written, by itself or by its views. Header-only: the verifiers
// of exec programs and of artifacts use it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <ranges>
#include <utility>
#include <vector>

namespace dlc::rt {

class WrittenRanges {
public:
  /// Bytes [begin, end).
  using Range = std::pair<uint64_t, uint64_t>;

  void add(Range range) {
    auto [begin, end] = range;
    if (begin >= end)
      return;
    auto next = ranges.upper_bound(begin);
    if (next != ranges.begin() && std::prev(next)->second >= begin)
      begin = (--next)->first;
    for (; next != ranges.end() && next->first <= end; next = ranges.erase(next))
      end = std::max(end, next->second);
    ranges[begin] = end;
  }
  /// What one kernel writes of a range that several write together.
  struct Part {
    uint64_t kernel = 0, bytes = 0;
  };
  /// The range counts as written once its parts, each kernel's once, are as large as it is.
  void addPart(Range range, Part part) {
    std::map<uint64_t, uint64_t> &known = parts[range];
    known[part.kernel] = part.bytes;
    uint64_t total = 0;
    for (auto [kernel, bytes] : known)
      total += bytes;
    if (total >= range.second - range.first)
      add(range);
  }
  bool covers(Range range) const {
    auto next = ranges.upper_bound(range.first);
    return range.first >= range.second ||
           (next != ranges.begin() && std::prev(next)->second >= range.second);
  }

  bool meets(Range range) const {
    auto next = ranges.lower_bound(range.second); // the first behind it
    return range.first < range.second && next != ranges.begin() &&
           std::prev(next)->second > range.first;
  }

  /// Bytes that have been written.
  uint64_t total() const {
    uint64_t bytes = 0;
    for (auto [begin, end] : ranges)
      bytes += end - begin;
    return bytes;
  }

  /// What nothing ever writes of a bucket, between its slices and behind them. Slices are those of
  /// its views that hold no other one.
  static WrittenRanges paddingOf(Range bucket, std::vector<Range> views) {
    std::erase_if(views, [](Range view) { return view.first >= view.second; });
    std::ranges::sort(views, std::ranges::greater(), &Range::first);
    WrittenRanges slices, padding;
    uint64_t lowestEnd = std::numeric_limits<uint64_t>::max(); // of views that begin no earlier
    for (auto view = views.begin(); view != views.end();) {
      auto next = std::ranges::find_if(view, views.end(),
                                       [&](Range other) { return other.first != view->first; });
      Range shortest = *std::ranges::min_element(view, next, {}, &Range::second);
      if (shortest.second < lowestEnd)
        slices.add(shortest);
      lowestEnd = std::min(lowestEnd, shortest.second);
      view = next;
    }
    for (Range slice : slices.ranges)
      padding.add({std::exchange(bucket.first, slice.second), slice.first});
    padding.add(bucket);
    return padding;
  }

private:
  std::map<uint64_t, uint64_t> ranges;                 // ends by begins; apart
  std::map<Range, std::map<uint64_t, uint64_t>> parts; // bytes by kernel
};

} // namespace dlc::rt
