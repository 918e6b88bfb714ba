// A program as its device runs it: every kernel bound, every address resolved, its collectives
// among the ranks' devices included.
//
// Running it neither allocates nor looks anything up, but for arrays that the device comes to keep.
// All methods are called from the one compute thread. Does not outlive its device; what it has not
// run when it is destroyed, it never runs.
#pragma once

#include "runtime/core/ArrayRow.h"
#include "runtime/core/DeviceSpan.h"
#include "runtime/core/MicroBatch.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dlc::rt {

/// One executed instruction, for traces and profiles. Times are steady-clock nanoseconds. The event
/// of a collective's start ends when the collective was first seen complete.
struct TraceEvent {
  uint32_t instruction;
  int64_t begin;
  int64_t end;
};

/// One run of a program, or of its part for one micro-batch.
struct RunArguments {
  unsigned slot = 0; // the input arena, 0 or 1
  uint64_t step = 0; // for messages
  MicroBatch part = {};
  std::span<const std::byte> scalars = {}; // from which uploads take them
  bool timed = false;
  /// Waits for each instruction, so that an error names the one that failed.
  bool oneByOne = false;
};

class Executable {
public:
  virtual ~Executable() = default;

  /// Runs the program after all that was started before. May return earlier than it has run, but
  /// has then taken over the scalars; the staged inputs of the slot stay until results are there.
  virtual void run(const RunArguments &arguments) = 0;
  /// An entry for each row of the input in `memory`, which is row-major. One that is set says from
  /// which array the device gathers the row in the next run on the slot, which clears it; of one
  /// that is not, the row is staged. Any thread may write entries while it may write the staged
  /// memory. Arrays stay as they are as long as their owners live; ArrayRow::mostSpots is kept to.
  /// Empty if the device keeps none, or has no room for what tells of rows.
  virtual std::span<ArrayRow> rows(DeviceSpan /*memory*/, artifact::DType, size_t /*rows*/) {
    return {};
  }
  /// The block of results of the last run on the slot, for which it waits, until the next one.
  virtual std::span<const std::byte> results(unsigned slot) = 0;
  /// False if all runs have ended.
  virtual bool isRunning() { return false; }
  /// The instructions of the last run, which was timed; waits for it.
  virtual std::span<const TraceEvent> times() = 0;
};

} // namespace dlc::rt
