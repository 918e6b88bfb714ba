// Paths for a signal's handler, which can neither lock nor allocate: they lie in a fixed table.
#pragma once

#include <array>
#include <atomic>
#include <climits>
#include <string>

namespace dlc::rt {

/// Up to `size` paths, each with a fact about it. Threads may add and remove at any time.
template <typename Fact, size_t size> class PathTable {
public:
  /// The place of the path; -1 if there is none left, or the path is too long.
  int add(const std::string &path, const Fact &fact) {
    if (path.size() >= PATH_MAX)
      return -1;
    for (size_t i = 0; i < size; ++i) {
      int expected = Free;
      if (!entries[i].state.compare_exchange_strong(expected, Filling))
        continue;
      entries[i].fact = fact;
      entries[i].path[path.copy(entries[i].path.data(), path.size())] = '\0';
      entries[i].state = Listed;
      return static_cast<int>(i);
    }
    return -1;
  }
  void remove(int place) {
    if (place >= 0)
      entries[static_cast<size_t>(place)].state = Free;
  }

  /// Calls visit(path, fact) for what is listed. May be called from a signal's handler.
  template <typename Visit> void forEach(Visit visit) const noexcept {
    for (const Entry &entry : entries)
      if (entry.state == Listed)
        visit(entry.path.data(), entry.fact);
  }

private:
  enum State : int { Free, Filling, Listed };
  struct Entry {
    std::atomic<int> state{Free};
    Fact fact;
    std::array<char, PATH_MAX> path;
  };
  static_assert(std::atomic<int>::is_always_lock_free);
  std::array<Entry, size> entries;
};

} // namespace dlc::rt
