// libFuzzer target of sessions. The hash is recomputed, so that the structural verifier is what is
// fuzzed: what it accepts must be safe to replay on a device that executes no kernel.

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Error.h"
#include "runtime/artifact/Writer.h"
#include "test/fuzz/IdleDevice.h"
#include "test/fuzz/RunPrograms.h"

#include <algorithm>

using namespace dlc::rt;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<uint8_t> file(data, data + size);
  file.resize(std::max<size_t>(size, 20));
  std::ranges::copy(std::string_view(dlc::artifact::ArtifactIdentifier()), file.begin() + 8);
  sealArtifact(file);
  SessionOptions options;
  options.threads = 1;
  options.makeDevice = [](const dlc::artifact::Target &, unsigned, ControlPlane &control) {
    return std::make_unique<test::IdleDevice>(control);
  };
  try {
    test::runPrograms(Artifact(std::move(file), "input"), options);
  } catch (const Error &) {
  }
  return 0;
}
