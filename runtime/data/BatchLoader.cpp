// Rows are claimed in order, batch after batch, so that when one has failed all before it are
// claimed, too: once no thread is busy any more, the first failure is known.
#include "runtime/data/BatchLoader.h"

#include <chrono>
#include <system_error>
#include <tuple>

namespace dlc::rt {

BatchLoader::BatchLoader(const Dataset &dataset, BatchPlan plan, int64_t firstBatch,
                         const Augmentation &augmentation, const Destinations &destinations,
                         unsigned threads)
    : dataset(dataset), plan(std::move(plan)), augmentation(augmentation),
      destinations(destinations), firstBatch(firstBatch) {
  try {
    for (unsigned i = 0; i < threads; ++i)
      team.emplace_back([this] { run(); });
  } catch (const std::system_error &) { // of which a smaller team does the same
    if (team.empty())
      throw;
  }
}

BatchLoader::~BatchLoader() {
  {
    std::scoped_lock lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  for (std::thread &thread : team)
    thread.join();
}

bool BatchLoader::haveRow() {
  if (failure)
    return false;
  if (begun > 0 && filling(begun - 1).claimed < filling(begun - 1).rows())
    return true;
  int64_t next = firstBatch + static_cast<int64_t>(begun);
  if (next >= plan.batches() || begun - released == 2)
    return false;
  filling(begun++) = {plan.at(next)};
  return true;
}

template <typename Part>
bool BatchLoader::unlocked(std::unique_lock<std::mutex> &lock, uint64_t batch, size_t row,
                           Part part) {
  Failure found{batch, row, nullptr};
  ++busy;
  lock.unlock();
  auto begin = std::chrono::steady_clock::now();
  try {
    part();
  } catch (...) {
    found.error = std::current_exception();
  }
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  lock.lock();
  done.seconds += taken.count();
  --busy;
  if (!found.error)
    return true;
  if (!failure || std::tie(batch, row) < std::tie(failure->batch, failure->row))
    failure = found;
  return false;
}

void BatchLoader::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return stopping || haveRow(); });
    if (stopping)
      return;
    uint64_t number = begun - 1;
    Filling &own = filling(number);
    size_t row = own.claimed++;
    if (unlocked(lock, number, row, [&] { fill(own.batch, row, number % 2); }) && ++done.samples &&
        ++own.written == own.rows())
      own.isChecked = unlocked(lock, number, own.rows(), [&] { dataset.requireWhole(); });
    while (filled < begun && filling(filled).isChecked)
      ++filled;
    changed.notify_all();
  }
}

void BatchLoader::fill(const Batch &batch, size_t row, unsigned slot) const {
  std::vector<Sample> samples =
      dataset.sample({batch.samples[row], batch.positions[row]}, augmentation);
  for (size_t input = 0; input < samples.size(); ++input)
    if (const std::optional<InputDestination> &to = destinations[input])
      to->writer.writeRow(static_cast<int64_t>(row), samples[input].values, to->slots[slot]);
}

BatchLoader::Loaded BatchLoader::acquire() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return filled > taken || (failure && busy == 0); });
  if (filled == taken)
    std::rethrow_exception(failure->error);
  auto slot = static_cast<unsigned>(taken % 2);
  return {slot, filling(taken++).batch};
}

BatchLoader::Work BatchLoader::work() {
  std::scoped_lock lock(mutex);
  return done;
}

void BatchLoader::release() {
  std::scoped_lock lock(mutex);
  ++released;
  changed.notify_all();
}

} // namespace dlc::rt
