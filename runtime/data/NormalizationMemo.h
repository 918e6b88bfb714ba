// What normalize does to samples as their files hold them, integers, found out once. May be used
// from any thread.
#pragma once

#include "runtime/data/steps/Sample.h"

#include <array>
#include <map>
#include <mutex>

namespace dlc::rt {

class NormalizationMemo {
public:
  /// A chain, by its number, and which of its members. Only its first normalize meets files'
  /// samples.
  using Place = std::array<size_t, 2>;

  /// Of a sample of so many, all of whose channels are treated alike; `measure` gives it.
  template <typename Measure>
  Normalization of(const Place &place, int64_t sample, int64_t samples, Measure measure) {
    auto at = static_cast<size_t>(sample);
    {
      std::scoped_lock<std::mutex> lock(mutex);
      std::vector<Entry> &entries = known[place];
      entries.resize(static_cast<size_t>(samples));
      if (const Entry &entry = entries[at]; entry.isKnown)
        return {{entry.shift}, {entry.divisor}};
    }
    Normalization found = measure();
    std::scoped_lock<std::mutex> lock(mutex);
    known[place][at] = {found.shift.at(0), found.divisor.at(0), true};
    return found;
  }

private:
  struct Entry {
    float shift, divisor;
    bool isKnown = false;
  };

  std::mutex mutex;
  std::map<Place, std::vector<Entry>> known;
};

} // namespace dlc::rt
