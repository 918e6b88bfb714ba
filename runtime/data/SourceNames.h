// Which sources a data block has, and which images of a directory are whose.
#pragma once

#include "runtime/artifact/artifact_generated.h"
#include "runtime/data/readers/ImageDirectory.h"

#include <string>
#include <utility>
#include <vector>

namespace dlc::rt {

/// INPUT=PATH of the command line, in order.
using DataPaths = std::vector<std::pair<std::string, std::string>>;

/// What the data block and the inputs of a model read: declared sources, and other names that no
/// chain makes.
std::vector<std::string> sourceNames(const artifact::DataPipelineT &pipeline,
                                     const std::vector<std::string> &knownInputs);

/// Whose images the directory of a source holds, given all paths.
ImageRule imageRule(const std::string &source, const std::vector<std::string> &sourceNames,
                    const DataPaths &paths);

/// `OUTPUT -> denormalize(SOURCE) -> OUTPUT` is no chain of inputs.
bool isRestoration(const artifact::DataChainT &chain);

/// "a, b", for messages.
std::string joined(const std::vector<std::string> &names);

} // namespace dlc::rt
