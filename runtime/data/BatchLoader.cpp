#include "runtime/data/BatchLoader.h"

namespace dlc::rt {

BatchLoader::BatchLoader(const Dataset &dataset, BatchPlan plan, int64_t firstStep,
                         const Augmentation &augmentation, const Destinations &destinations)
    : dataset(dataset), plan(std::move(plan)), augmentation(augmentation),
      destinations(destinations), thread([this, firstStep] { work(firstStep); }) {}

BatchLoader::~BatchLoader() {
  {
    std::scoped_lock lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  thread.join();
}

void BatchLoader::work(int64_t firstStep) {
  try {
    for (int64_t step = firstStep; step < plan.batches(); ++step) {
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stopping || filled - released < 2; });
        if (stopping)
          return;
      }
      Batch batch = plan.at(step);
      auto slot = static_cast<unsigned>(filled % 2);
      fill(batch, slot);
      std::scoped_lock lock(mutex);
      batches[slot] = std::move(batch);
      ++filled;
      changed.notify_all();
    }
  } catch (...) {
    std::scoped_lock lock(mutex);
    failure = std::current_exception();
    changed.notify_all();
  }
}

void BatchLoader::fill(const Batch &batch, unsigned slot) {
  for (size_t row = 0; row < batch.samples.size(); ++row) {
    std::vector<Sample> samples =
        dataset.sample({batch.samples[row], batch.positions[row]}, augmentation);
    for (size_t input = 0; input < samples.size(); ++input)
      if (const std::optional<InputDestination> &to = destinations[input])
        to->writer.writeRow(static_cast<int64_t>(row), samples[input].values, to->slots[slot]);
  }
  dataset.requireWhole();
}

BatchLoader::Loaded BatchLoader::acquire() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return filled > taken || failure; });
  if (filled == taken)
    std::rethrow_exception(failure);
  auto slot = static_cast<unsigned>(taken++ % 2);
  return {slot, batches[slot]};
}

void BatchLoader::release() {
  std::scoped_lock lock(mutex);
  ++released;
  changed.notify_all();
}

} // namespace dlc::rt
