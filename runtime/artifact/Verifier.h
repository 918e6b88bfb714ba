// The structural verifier of artifacts.
//
// Input is what the FlatBuffers verifier accepts: offsets lie inside the file, but indices, sizes,
// enumerators and the plan itself may be anything. Runs in O(n log n) and allocates in proportion
// to the file, whatever the file says.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

/// One line per fault, at most 20; empty if everything in the artifact may be trusted.
std::vector<std::string> verifyArtifact(const artifact::Artifact &root,
                                        std::span<const uint8_t> dataSection);

} // namespace dlc::rt
