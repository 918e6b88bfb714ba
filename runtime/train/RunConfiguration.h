// config.json of a run directory: what a run is, where its data lie, and how far it trains.
//
// What determines its numbers is the recipe, which checkpoints hold; config.json repeats it to be
// read. Everything else a resumed run takes from here.
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

/// Of complete options.
nlohmann::ordered_json runConfiguration(const Artifact &artifact, const TrainOptions &options,
                                        const Recipe &recipe, const RunState &state);

} // namespace dlc::rt
