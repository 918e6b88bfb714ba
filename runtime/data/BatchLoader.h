// A thread that fills the idle one of two input slots while the program runs on the other.
//
// Batch k of the pass goes to slot k % 2. The compute thread calls acquire() and release() in turn;
// between them the slot belongs to it, otherwise to the loader. Destroying the loader stops the
// thread; nothing writes to the slots afterwards.
#pragma once

#include "runtime/data/Batches.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/TensorWriter.h"

#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace dlc::rt {

/// Where one input goes: its memory in both slots and how to write it.
struct InputDestination {
  TensorWriter writer;
  std::array<std::span<std::byte>, 2> slots;
};

using Destinations = std::vector<std::optional<InputDestination>>;

class BatchLoader {
public:
  /// Loads the batches of the plan from `firstStep` on. `destinations` are in the order of
  /// dataset.inputs(), empty where the program lacks the input; all referred to must outlive the
  /// loader.
  BatchLoader(const Dataset &dataset, BatchPlan plan, int64_t firstStep,
              const Augmentation &augmentation, const Destinations &destinations);
  ~BatchLoader();
  BatchLoader(const BatchLoader &) = delete;
  BatchLoader &operator=(const BatchLoader &) = delete;

  struct Loaded {
    unsigned slot;
    Batch batch;
  };
  /// Waits for the next batch; rethrows what went wrong while loading it.
  Loaded acquire();
  /// Gives the acquired slot back.
  void release();

private:
  void work(int64_t firstStep);
  void fill(const Batch &batch, unsigned slot);

  const Dataset &dataset;
  const BatchPlan plan;
  const Augmentation augmentation;
  const Destinations &destinations;

  std::mutex mutex;
  std::condition_variable changed;
  std::array<Batch, 2> batches;
  uint64_t filled = 0, taken = 0, released = 0; // batches of this pass
  std::exception_ptr failure;
  bool stopping = false;
  std::thread thread; // last: starts when everything else is there
};

} // namespace dlc::rt
