#include "tools/dlc-run/Tune.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Error.h"
#include "runtime/artifact/Writer.h"
#include "runtime/core/BackEnd.h"

#include <cstdio>

namespace dlc::run {

int tune(const std::string &file, const std::string &output) {
  rt::Artifact artifact(file);
  std::string reason;
  const rt::BackEnd *backEnd = rt::findBackEnd(artifact->target()->name()->str(), reason);
  if (!backEnd)
    throw rt::Error(rt::ErrorCode::Runtime, reason);
  std::vector<uint8_t> tuned = backEnd->tune(artifact, [](const std::string &text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  });
  rt::Artifact verified(tuned, output);
  if (reason = rt::ArtifactWriter::writeFile(output, tuned); !reason.empty())
    throw rt::Error(rt::ErrorCode::BadInput, reason);
  std::printf("%s written\n", output.c_str());
  return 0;
}

} // namespace dlc::run
