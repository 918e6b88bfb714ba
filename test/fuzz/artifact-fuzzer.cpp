// libFuzzer target of the artifact loader. The hash is recomputed, so that the structural verifier
// is what is fuzzed; no code of an artifact is ever loaded.

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Error.h"
#include "runtime/artifact/Writer.h"

#include <algorithm>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<uint8_t> file(data, data + size);
  file.resize(std::max<size_t>(size, 20));
  std::ranges::copy(std::string_view(dlc::artifact::ArtifactIdentifier()), file.begin() + 8);
  dlc::rt::sealArtifact(file);
  try {
    dlc::rt::Artifact artifact(std::move(file), "input");
  } catch (const dlc::rt::Error &) {
  }
  return 0;
}
