// Artifacts whose library kernels have other plans.

#include "runtime/artifact/ReplacePlans.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/artifact/TinyArtifact.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace dlc;
using namespace dlc::rt;
using namespace dlc::rt::test;

namespace {

/// With a library kernel.
Artifact artifactWithPlan() {
  TinyArtifact tiny;
  artifact::KernelT &kernel = *tiny.root.kernels[0];
  kernel.kind = artifact::KernelKind::Library;
  kernel.implementation = "before";
  kernel.plan = {1, 2, 3};
  kernel.nanoseconds = 7;
  return {tiny.pack(), "tiny.dlx"};
}

} // namespace

TEST(ReplacePlans, ChangesNothingElse) {
  Artifact before = artifactWithPlan();
  std::vector<uint8_t> longer(1000, 9);
  Artifact after(replacePlans(before, std::vector<NewPlan>{{0, "after", longer, 11}}, "newer"),
                 "new.dlx");
  const artifact::Kernel &kernel = *after->kernels()->Get(0);
  EXPECT_EQ(kernel.implementation()->str(), "after");
  EXPECT_TRUE(std::ranges::equal(*kernel.plan(), longer));
  EXPECT_EQ(kernel.nanoseconds(), 11U);
  EXPECT_TRUE(std::ranges::equal(after.data(), before.data()));
  EXPECT_EQ(after->target()->library()->str(), "newer");
  // The way back leads to the same file.
  std::vector<uint8_t> back =
      replacePlans(after, std::vector<NewPlan>{{0, "before", {1, 2, 3}, 7}}, "older");
  EXPECT_EQ(back, replacePlans(before, {}, "older"));
}

TEST(ReplacePlans, RefusesGeneratedKernels) {
  Artifact artifact = artifactWithPlan();
  EXPECT_EQ(errorOf([&] { replacePlans(artifact, std::vector<NewPlan>{{1, "x", {1}, 1}}, ""); }),
            "kernel update is generated and has no plan");
}
