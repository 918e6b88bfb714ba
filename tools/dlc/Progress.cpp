#include "tools/dlc/Progress.h"

#include "tools/dlc/InspectArtifact.h"

#include "llvm/Support/FormatVariadic.h"

std::string dlc::closingLine(const rt::Artifact &artifact, const std::string &path) {
  ArtifactSummary summary = summaryOf(artifact);
  std::string line = llvm::formatv("{0}: {1:N} parameters, {2:F2} MB planned", path,
                                   summary.parameters, static_cast<double>(summary.bytes) * 1e-6);
  if (summary.step)
    line +=
        llvm::formatv(", forecast of a step {0:F2} ms", static_cast<double>(*summary.step) * 1e-6);
  return line;
}
