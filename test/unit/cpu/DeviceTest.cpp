// What the CPU device refuses.

#include "runtime/artifact/Error.h"
#include "runtime/comm/ControlPlanes.h"
#include "runtime/cpu/CpuDevice.h"

#include <gtest/gtest.h>

using namespace dlc;
using namespace dlc::rt;

TEST(CpuDevice, RefusesArtifactsForOtherInstructionSets) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<flatbuffers::String>> features{builder.CreateString("sse2"),
                                                                 builder.CreateString("avx99")};
  builder.Finish(artifact::CreateTargetDirect(builder, "cpu:avx2", &features));
  const auto *target = flatbuffers::GetRoot<artifact::Target>(builder.GetBufferPointer());
  try {
    CpuDevice device(*target, 1, makeSingleControlPlane()->hostCollectives());
    FAIL() << "accepted";
  } catch (const Error &error) {
    EXPECT_EQ(error.code, ErrorCode::Artifact);
    std::string message = error.what();
    EXPECT_NE(message.find("was compiled for cpu:avx2 and needs avx99, which this processor"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("compile it with a --target of this machine"), std::string::npos)
        << message;
  }
}
