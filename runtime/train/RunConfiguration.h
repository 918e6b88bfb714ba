// The resolved configuration of a run as JSON: what the run directory keeps.
#pragma once

#include "runtime/core/Session.h"
#include "runtime/train/RunState.h"
#include "runtime/train/TrainOptions.h"

#include <nlohmann/json.hpp>

namespace dlc::rt {

nlohmann::ordered_json runConfiguration(const Session &session, const TrainOptions &options,
                                        const RunState &state);

} // namespace dlc::rt
