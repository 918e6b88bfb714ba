// Writes checkpoints while training goes on.
//
// A save copies the variables between two steps, into memory that the constructor allocates; a
// thread then writes the copy. Rank 0's. One compute thread makes all calls.
#pragma once

#include "runtime/train/Checkpoint.h"

#include <future>

namespace dlc::rt {

class CheckpointWriter {
public:
  CheckpointWriter(const Session &session, const DataRecord &data);
  /// Waits for the file. Its error is lost.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter &) = delete;
  CheckpointWriter &operator=(const CheckpointWriter &) = delete;

  /// Memory of the copy.
  uint64_t bytes() const;
  /// True while the thread writes.
  bool isBusy() const;
  /// Copies now, and writes later. Nothing is being written. Throws the error of the file before.
  void begin(const RunState &state, const std::string &path);
  /// Returns when nothing is being written. Throws Error(Runtime) for a file that could not be
  /// written, once.
  void wait();

private:
  void copy();

  const Session &session;
  std::vector<VariableInfo> variables;
  TensorFile file;
  std::vector<std::byte> scratch;
  std::future<void> written;
};

} // namespace dlc::rt
