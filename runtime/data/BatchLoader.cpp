// Rows are claimed in order, several at a time, batch after batch, and those of a claim are written
// in order: when one has failed all before it are claimed, too, and once no thread is busy any
// more, the first failure is known.
#include "runtime/data/BatchLoader.h"

#include "runtime/data/ArrayRows.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <tuple>

namespace dlc::rt {

/// Parts of a batch, so that threads end at about the same time.
constexpr size_t claimsPerThread = 4;

bool InputDestination::gathers(const Sample &sample, unsigned slot) const {
  return !rows[slot].empty() && isOfHeldArray(sample) && writer.takes(*sample.unread) &&
         sample.unread->spots.size() <= ArrayRow::mostSpots(sample.unread->elements());
}

void InputDestination::put(int64_t row, Sample &sample, unsigned slot) const {
  bool isGathered = gathers(sample, slot);
  if (!rows[slot].empty())
    rows[slot][static_cast<size_t>(row)] = isGathered ? arrayRow(*sample.unread) : ArrayRow();
  if (!isGathered)
    writer.writeRow(row, sample, slots[slot]);
}

BatchLoader::BatchLoader(const Dataset &dataset, BatchPlan plan, int64_t firstBatch,
                         const Augmentation &augmentation, const Destinations &destinations,
                         unsigned threads)
    : dataset(dataset), plan(std::move(plan)), augmentation(augmentation),
      destinations(destinations), firstBatch(firstBatch), claims(claimsPerThread * threads) {
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
  std::exception_ptr error;
  ++busy;
  lock.unlock();
  auto begin = std::chrono::steady_clock::now();
  try {
    part();
  } catch (...) {
    error = std::current_exception();
  }
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  lock.lock();
  done.seconds += taken.count();
  --busy;
  if (!error)
    return true;
  if (!failure || std::tie(batch, row) < std::tie(failure->batch, failure->row))
    failure = {batch, row, error};
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
    size_t first = own.claimed, row = first;
    own.claimed = std::min(first + std::max<size_t>(own.rows() / claims, 1), own.rows());
    auto write = [&, end = own.claimed] {
      for (; row < end; ++row)
        fill(own.batch, row, number % 2);
    };
    bool isWritten = unlocked(lock, number, first, write);
    own.written += row - first;
    done.samples += static_cast<int64_t>(row - first);
    if (isWritten && own.written == own.rows())
      own.isChecked = unlocked(lock, number, own.rows(), [&] { dataset.requireWhole(); });
    bool isNews = failure.has_value();
    for (; filled < begun && filling(filled).isChecked; ++filled)
      isNews = true;
    if (isNews)
      changed.notify_all();
  }
}

void BatchLoader::fill(const Batch &batch, size_t row, unsigned slot) const {
  std::vector<Sample> samples =
      dataset.unreadSample({batch.samples[row], batch.positions[row]}, augmentation);
  for (size_t input = 0; input < samples.size(); ++input)
    if (const std::optional<InputDestination> &to = destinations[input])
      to->put(static_cast<int64_t>(row), samples[input], slot);
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
