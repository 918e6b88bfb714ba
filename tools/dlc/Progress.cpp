#include "tools/dlc/Progress.h"

#include "tools/dlc/InspectArtifact.h"

#include "llvm/Support/FormatVariadic.h"

std::string dlc::closingLine(const rt::Artifact &artifact, const std::string &path) {
  nlohmann::ordered_json description = describeArtifact(artifact, {});
  std::string line = llvm::formatv("{0}: {1:N} parameters, {2:F2} MB planned", path,
                                   description["parameter_count"].get<uint64_t>(),
                                   description["memory"]["bytes"].get<double>() * 1e-6);
  for (const auto &program : description["programs"])
    if (program["name"] == "train")
      line += llvm::formatv(", forecast of a step {0:F2} ms",
                            program["forecast"]["step_ns"].get<double>() * 1e-6);
  return line;
}
