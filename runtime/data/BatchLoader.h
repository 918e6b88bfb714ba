// Threads that fill the idle one of two input slots while the program runs on the other.
//
// Batch k of the pass goes to slot k % 2. The compute thread calls acquire() and release() in turn;
// between them the slot belongs to it, otherwise to the loader. What a slot holds does not depend
// on the number of threads, nor which error ends the pass: the first in the order of batches and
// rows. Destroying the loader stops the threads; nothing writes to the slots afterwards.
#pragma once

#include "runtime/core/ArrayRow.h"
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
  /// Where to say instead of which elements of held arrays rows are; empty if none may be. A device
  /// reads the arrays when it gathers the rows.
  std::array<std::span<ArrayRow>, 2> rows = {};

  void put(int64_t row, Sample &sample, unsigned slot) const;

private:
  bool gathers(const Sample &sample, unsigned slot) const;
};

using Destinations = std::vector<std::optional<InputDestination>>;

class BatchLoader {
public:
  /// Loads the batches of the plan from `firstBatch` on. `destinations` are in the order of
  /// dataset.inputs(), empty where the program lacks the input; all referred to must outlive the
  /// loader.
  BatchLoader(const Dataset &dataset, BatchPlan plan, int64_t firstBatch,
              const Augmentation &augmentation, const Destinations &destinations,
              unsigned threads = 1);
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

  /// What samples have taken so far.
  struct Work {
    double seconds = 0; // of all threads
    int64_t samples = 0;
  };
  Work work();

private:
  /// A batch whose rows are being written into the slot of its number.
  struct Filling {
    Batch batch;
    size_t claimed = 0, written = 0; // rows
    bool isChecked = false;          // all rows, whose files were whole until then

    size_t rows() const { return batch.samples.size(); }
  };
  struct Failure {
    uint64_t batch;
    size_t row; // the first of those that the thread had claimed
    std::exception_ptr error;
  };

  Filling &filling(uint64_t batch) { return slots[batch % 2]; }
  /// Under the lock: begins the next batch if all rows are claimed and a slot is free. False if
  /// there is nothing to claim.
  bool haveRow();
  void run();
  /// Does a part of a batch's work, from the row on, without the lock. False, and noted, if it
  /// fails.
  template <typename Part>
  bool unlocked(std::unique_lock<std::mutex> &lock, uint64_t batch, size_t row, Part part);
  void fill(const Batch &batch, size_t row, unsigned slot) const;

  const Dataset &dataset;
  const BatchPlan plan;
  const Augmentation augmentation;
  const Destinations &destinations;
  const int64_t firstBatch;
  const size_t claims; // in which the threads take a batch

  std::mutex mutex;
  std::condition_variable changed;
  std::array<Filling, 2> slots;
  uint64_t begun = 0, filled = 0, taken = 0, released = 0; // batches of this pass
  unsigned busy = 0;                                       // threads at work on a batch
  std::optional<Failure> failure;
  Work done;
  bool stopping = false;
  std::vector<std::thread> team; // last: starts when everything else is there
};

} // namespace dlc::rt
