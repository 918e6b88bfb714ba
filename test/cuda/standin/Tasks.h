// Work that runs as late as it may: when somebody waits for it, each task behind those that it
// names. Drawn by chance: whether more runs then than must, and in which order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <vector>

namespace dlc::rt::standin {

class Tasks {
public:
  using Task = uint64_t;

  explicit Tasks(uint64_t seed) : random(seed) {}

  Task add(std::vector<Task> after, std::function<void()> work);
  bool isPending(Task task) const { return pending.contains(task); }
  /// Until all of these have run. If one throws, all that is pending is gone.
  void run(const std::vector<Task> &wanted);
  void runAll();

private:
  struct Waiting {
    std::vector<Task> after;
    std::function<void()> work;
  };

  void runWithOthersBefore(Task task);

  std::mt19937_64 random;
  std::map<Task, Waiting> pending;
  Task next = 1;
};

} // namespace dlc::rt::standin
