// What a changed artifact is refused for.
#pragma once

#include "test/unit/artifact/TinyArtifact.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Error.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace dlc::rt::test {

inline std::string messageOf(std::vector<uint8_t> bytes) {
  try {
    Artifact artifact(std::move(bytes), "file");
    return "";
  } catch (const Error &error) {
    EXPECT_EQ(error.code, ErrorCode::Artifact);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
}

inline std::string messageAfter(const std::function<void(TinyArtifact &)> &change) {
  TinyArtifact tiny;
  change(tiny);
  return messageOf(tiny.pack());
}

struct FaultCase {
  const char *name;
  void (*change)(TinyArtifact &);
  const char *message;
};

inline void addCopy(TinyArtifact &t, artifact::Stream stream, uint32_t source,
                    uint32_t destination) {
  artifact::CopyT copy;
  copy.source = source;
  copy.destination = destination;
  t.addInstruction(stream, copy);
}

} // namespace dlc::rt::test
