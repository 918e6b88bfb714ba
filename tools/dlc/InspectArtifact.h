// What `dlc inspect FILE.dlx` tells: facts of an artifact as JSON, and the same as text.
#pragma once

#include "passes/planning/OverlapSimulator.h"
#include "runtime/artifact/Artifact.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <ostream>
#include <vector>

namespace dlc {

/// For which run the communication is forecast; what is not given is as planned.
struct InspectOptions {
  std::optional<Link> link;
  std::optional<unsigned> ranks;
  /// Measured nanoseconds of each instruction of @train (the instruction_ns of dlc-run bench
  /// --json), in place of the planner's; empty: none.
  std::vector<uint64_t> trainTimes;
};

/// What `dlc compile` tells of an artifact.
struct ArtifactSummary {
  uint64_t parameters = 0;      // elements
  uint64_t bytes = 0;           // of all arenas
  std::optional<uint64_t> step; // nanoseconds of @train, if there is one
};
ArtifactSummary summaryOf(const rt::Artifact &artifact);

/// Target, parameters, arenas, and per program its kernels, buckets and forecast. Bytes,
/// nanoseconds, FLOPs.
nlohmann::ordered_json describeArtifact(const rt::Artifact &artifact,
                                        const InspectOptions &options);

/// The description as tables for people.
void printDescription(const nlohmann::ordered_json &description, std::ostream &out);

} // namespace dlc
