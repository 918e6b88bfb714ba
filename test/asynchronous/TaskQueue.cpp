#include "test/asynchronous/TaskQueue.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <numeric>

namespace dlc::rt::test {

TaskQueue::Task TaskQueue::add(unsigned stream, std::vector<Task> after,
                               std::function<void()> work) {
  Task number = first + done.size();
  done.push_back(false);
  waiting[stream].push_back({number, std::move(after), std::move(work)});
  return number;
}

bool TaskQueue::isReady(unsigned stream) const {
  if (waiting[stream].empty())
    return false;
  return std::ranges::all_of(waiting[stream].front().after,
                             [&](Task task) { return task < first || done[task - first]; });
}

unsigned TaskQueue::choose() {
  std::vector<unsigned> ready;
  for (unsigned stream : ranking)
    if (isReady(stream))
      ready.push_back(stream);
  if (ready.empty())
    throw Error(ErrorCode::Runtime, "streams wait for each other");
  return ranked ? ready.front() : ready[random() % ready.size()];
}

bool TaskQueue::isEmpty() const {
  return std::ranges::all_of(waiting, [](const auto &stream) { return stream.empty(); });
}

void TaskQueue::rank() {
  std::iota(ranking.begin(), ranking.end(), 0);
  for (uint64_t i = turn++ % 24; i > 0; --i) // 4! rankings
    std::ranges::next_permutation(ranking);
  ranked = random() % 4 > 0;
}

void TaskQueue::drain() {
  if (!isEmpty())
    rank();
  while (!isEmpty()) {
    try {
      std::deque<Waiting> &stream = waiting[choose()];
      stream.front().work();
      done[stream.front().number - first] = true;
      stream.pop_front();
    } catch (...) {
      clear();
      throw;
    }
  }
  clear();
}

void TaskQueue::clear() {
  for (std::deque<Waiting> &stream : waiting)
    stream.clear();
  first += done.size();
  done.clear();
}

} // namespace dlc::rt::test
