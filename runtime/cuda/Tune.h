// Convolutions of an artifact, timed on this machine's GPU.
#pragma once

#include "runtime/artifact/Artifact.h"

#include <functional>
#include <string>
#include <vector>

namespace dlc::rt {

/// The artifact with the plan first that is the fastest on this GPU of all that cuDNN suggests and
/// that are admissible within the planned workspace; the planned one unless another is clearly
/// faster. `progress` hears of each kernel. Throws Error as a device of the artifact would.
std::vector<uint8_t> tune(const Artifact &artifact,
                          const std::function<void(const std::string &)> &progress);

} // namespace dlc::rt
