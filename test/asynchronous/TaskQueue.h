// Work of streams that runs later, all at once, in one of the orders that the streams allow.
//
// A stream runs its tasks one after the other, each after those that it names besides. Which stream
// is next is drawn by chance at every task, or follows from a ranking of the streams, of which
// every drain has the next one: so some run as far ahead of others as they can. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <vector>

namespace dlc::rt::test {

class TaskQueue {
public:
  using Task = uint64_t;
  static constexpr unsigned streams = 4;

  explicit TaskQueue(uint64_t seed) : random(seed), turn(seed) {}

  Task add(unsigned stream, std::vector<Task> after, std::function<void()> work);
  /// Runs all tasks. If one throws, the others are gone.
  void drain();
  void clear();

private:
  struct Waiting {
    Task number;
    std::vector<Task> after;
    std::function<void()> work;
  };

  bool isEmpty() const;
  bool isReady(unsigned stream) const;
  void rank();
  unsigned choose();

  std::mt19937_64 random;
  std::array<std::deque<Waiting>, streams> waiting;
  std::vector<bool> done; // by task, since `first`
  Task first = 0;
  uint64_t turn; // of rankings
  std::array<unsigned, streams> ranking{};
  bool ranked = false;
};

} // namespace dlc::rt::test
