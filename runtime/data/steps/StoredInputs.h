// Which inputs of a model may come as the files of their sources hold them.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <map>
#include <optional>
#include <string>

namespace dlc::rt {

/// A step of a data block, by its numbers in the block and in its chain.
struct StepPlace {
  size_t chain, step;
  auto operator<=>(const StepPlace &) const = default;
};

/// What a data block makes of the samples of a source.
struct InputOrigin {
  std::string source;
  /// Elements of the source, or zeros, in other places; where `normalize` is set, what that step
  /// makes of them. Steps between a source and normalize do not compute, and behind it none does
  /// or adds zeros.
  bool isStored = true;
  std::optional<StepPlace> normalize = {};
};

/// By name of what the block's chains read and make. An input that no chain makes is its own
/// source. One normalize is left to the program for all that it feeds, or for none of it. Throws
/// Error(Artifact) for steps that makeStep does not know.
using InputOrigins = std::map<std::string, InputOrigin>;
InputOrigins inputOrigins(const artifact::DataPipelineT &pipeline);
/// For code without exceptions: nothing, and the error's text in `reason`.
std::optional<InputOrigins> inputOrigins(const artifact::DataPipelineT &pipeline,
                                         std::string &reason);

/// The origin of an input, which may be in no chain.
InputOrigin originOf(const InputOrigins &origins, const std::string &input);

} // namespace dlc::rt
