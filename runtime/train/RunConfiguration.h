// config.json of a run directory: what a run is, where its data lie, and how far it trains.
//
// A resumed run takes everything from here but its recipe, which determines its numbers and lies in
// the checkpoints. config.json repeats the recipe for people to read.
#pragma once

#include "runtime/core/Session.h"
#include "runtime/train/Recipe.h"
#include "runtime/train/RunState.h"
#include "runtime/train/TrainOptions.h"

#include <nlohmann/json.hpp>

namespace dlc::rt {

/// The options with what they leave out: data paths, start weights, and `epochs` or `steps`, as the
/// configuration file at `path` has them if the run is resumed, else the model's epochs. Throws
/// Error(BadInput) if the file is damaged.
TrainOptions completeOptions(TrainOptions options, const Artifact &artifact,
                             const std::string &path);

/// The options must be complete.
nlohmann::ordered_json runConfiguration(const Artifact &artifact, const TrainOptions &options,
                                        const Recipe &recipe, const RunState &state);

} // namespace dlc::rt
