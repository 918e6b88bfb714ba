// Variables to and from safetensors files.
//
// Tensors are logical, row-major f32 whatever the device's layout. A checkpoint holds parameters,
// state, slots, what it keeps of the data, and the run's state; a weights file (--save) holds
// neither the latter nor slots, so equal training gives equal bytes. Collective nowhere: rank 0
// writes, all ranks read.
#pragma once

#include "runtime/core/Session.h"
#include "runtime/train/DataRecord.h"
#include "runtime/train/RunState.h"
#include "runtime/train/Signature.h"

namespace dlc::rt {

/// Where a checkpoint's metadata have the run's state.
inline constexpr const char *runStateKey = "dlc.run";

/// What a checkpoint holds: parameters, state and slots.
std::vector<VariableInfo> checkpointVariables(const Session &session);

/// Throws Error(BadInput) listing names and shapes unless `file` has all wanted tensors in their
/// shapes and none that is unknown. Slots, data statistics and num_batches_tracked may be there.
/// With `mayExcept` the error says how --init leaves out what does not fit.
void checkTensors(const std::vector<VariableInfo> &wanted, const TensorFile &file,
                  const std::string &path, const std::string &model, bool mayExcept = false);

/// Takes what patterns match out of both. Throws Error(BadInput) for a pattern that matches nothing
/// in either.
void leaveOut(const std::vector<std::string> &patterns, std::vector<VariableInfo> &wanted,
              TensorFile &file, const std::string &path);

/// Parameters and state of a file, as eval and predict want them: averages where it has some.
/// Returns what it keeps of the data.
DataRecord loadWeights(Session &session, const std::string &path);

/// Parameters and state of a file for a run to start from; those whose names match a pattern of
/// `except` stay as they are.
void startFrom(Session &session, const std::string &path, const std::vector<std::string> &except);

/// Parameters or, where the model keeps them, their averages.
void saveWeights(const Session &session, const DataRecord &data, const std::string &path);

/// With `averaged`, parameters that have averages are saved as those, too.
void saveCheckpoint(const Session &session, const DataRecord &data, const RunState &state,
                    bool averaged, const std::string &path);

struct LoadedCheckpoint {
  RunState state;
  DataRecord data;
};
/// Also restores the slots; throws Error(BadInput) if the file is a weights file alone.
LoadedCheckpoint loadCheckpoint(Session &session, const std::string &path);

} // namespace dlc::rt
