// A handler can neither lock nor allocate: the paths lie in a fixed table, and what finds no room
// there is left to the destructors.
#include "runtime/core/Leftover.h"

#include <array>
#include <atomic>
#include <climits>
#include <unistd.h>

namespace dlc::rt {

namespace {

enum State : int { Free, Filling, Listed };

struct Entry {
  std::atomic<int> state{Free};
  std::array<char, PATH_MAX> path;
};
static_assert(std::atomic<int>::is_always_lock_free);
std::array<Entry, 16> table;
std::atomic<void (*)() noexcept> moreToRemove{nullptr};

} // namespace

Leftover::Leftover(const std::string &path) {
  if (path.size() >= PATH_MAX)
    return;
  for (size_t i = 0; i < table.size() && slot < 0; ++i) {
    int expected = Free;
    if (table[i].state.compare_exchange_strong(expected, Filling))
      slot = static_cast<int>(i);
  }
  if (slot < 0)
    return;
  Entry &entry = table[static_cast<size_t>(slot)];
  entry.path[path.copy(entry.path.data(), path.size())] = '\0';
  entry.state = Listed;
}

Leftover::~Leftover() {
  if (slot >= 0)
    table[static_cast<size_t>(slot)].state = Free;
}

void Leftover::removeAll() noexcept {
  for (Entry &entry : table)
    if (entry.state == Listed)
      ::unlink(entry.path.data());
  if (auto *more = moreToRemove.load())
    more();
}

void Leftover::alsoRemove(void (*more)() noexcept) noexcept { moreToRemove = more; }

} // namespace dlc::rt
