#include "test/cuda/standin/Tasks.h"

#include <algorithm>

namespace dlc::rt::standin {

Tasks::Task Tasks::add(std::vector<Task> after, std::function<void()> work) {
  pending[next] = {std::move(after), std::move(work)};
  return next++;
}

void Tasks::runWithOthersBefore(Task task) {
  auto found = pending.extract(task);
  if (!found)
    return;
  std::vector<Task> &after = found.mapped().after;
  std::ranges::shuffle(after, random);
  for (Task other : after)
    runWithOthersBefore(other);
  found.mapped().work();
}

void Tasks::run(const std::vector<Task> &wanted) try {
  bool isHasty = random() % 2 == 0;
  for (Task task : wanted)
    while (isPending(task)) {
      Task first = task;
      if (isHasty) {
        auto drawn = pending.begin();
        std::advance(drawn, random() % pending.size());
        first = drawn->first;
      }
      runWithOthersBefore(first);
    }
} catch (...) {
  pending.clear();
  throw;
}

void Tasks::runAll() {
  std::vector<Task> all;
  for (const auto &[task, waiting] : pending)
    all.push_back(task);
  std::ranges::shuffle(all, random);
  run(all);
}

} // namespace dlc::rt::standin
