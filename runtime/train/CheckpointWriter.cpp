#include "runtime/train/CheckpointWriter.h"

#include <chrono>

namespace dlc::rt {

CheckpointWriter::CheckpointWriter(const Session &session, const DataRecord &data)
    : session(session), variables(checkpointVariables(session)) {
  data.addTo(file);
  copy(); // allocates, and touches every page
}

CheckpointWriter::~CheckpointWriter() {
  if (written.valid())
    written.wait();
}

void CheckpointWriter::copy() {
  for (const VariableInfo &variable : variables) {
    Tensor &tensor = file.tensors[variable.tensor];
    tensor.shape = variable.shape;
    session.read(variable.name, tensor.values, scratch);
  }
}

uint64_t CheckpointWriter::bytes() const {
  uint64_t bytes = scratch.capacity();
  for (const auto &[name, tensor] : file.tensors)
    bytes += tensor.values.capacity() * sizeof(float);
  return bytes;
}

bool CheckpointWriter::isBusy() const {
  return written.valid() && written.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void CheckpointWriter::begin(const RunState &state, const std::string &path) {
  wait();
  copy();
  file.metadata[runStateKey] = state.toJson();
  written = std::async(std::launch::async, [this, path] { writeSafetensors(path, file); });
}

void CheckpointWriter::wait() {
  if (written.valid())
    written.get();
}

} // namespace dlc::rt
