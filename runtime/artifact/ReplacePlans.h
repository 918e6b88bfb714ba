// An artifact with other plans of library kernels, all else as it was.
#pragma once

#include "runtime/artifact/Artifact.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

struct NewPlan {
  uint32_t kernel; // index
  std::string implementation;
  std::vector<uint8_t> plan;
  uint64_t nanoseconds;
};

/// The file's bytes, sealed. `library`: that and the version that made the plans. Throws
/// Error(Artifact) if a kernel is generated.
std::vector<uint8_t> replacePlans(const Artifact &artifact, std::span<const NewPlan> plans,
                                  const std::string &library);

} // namespace dlc::rt
