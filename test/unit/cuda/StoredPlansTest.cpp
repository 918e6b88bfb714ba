// Plans of whole artifacts, those in the folder that DLC_ARTIFACTS names, by the real cuDNN, which
// needs no GPU for that: the compiler's or, as LD_LIBRARY_PATH has it, another version.

#include "runtime/artifact/Artifact.h"
#include "runtime/cuda/CudaTarget.h"
#include "runtime/cuda/libraries/Cudnn.h"
#include "runtime/cuda/plans/CudaPlan.h"
#include "runtime/cuda/plans/CudnnGraph.h"
#include "test/unit/ErrorOf.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

using namespace dlc;
using namespace dlc::rt;
using Json = nlohmann::json;

namespace {

/// A kernel's plans, and in which math its artifact's kernels compute.
struct Stored {
  CudaPlan plan;
  Math math;
};

class StoredPlans : public testing::Test {
protected:
  void SetUp() override {
    const char *folder = std::getenv("DLC_ARTIFACTS");
    if (!folder)
      GTEST_SKIP() << "DLC_ARTIFACTS is not set";
    std::string reason;
    library = cudnn::open(reason);
    ASSERT_TRUE(library) << reason;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".dlx")
        add(Artifact(entry.path()));
    ASSERT_FALSE(kernels.empty()) << "no artifact in " << folder;
  }

  void add(const Artifact &artifact) {
    ASSERT_EQ(artifact->target()->name()->str(), "cuda:h200") << artifact.name();
    Math math = mathOf(*artifact->target());
    size_t own = 0;
    for (const artifact::Kernel *kernel : *artifact->kernels()) {
      if (kernel->kind() != artifact::KernelKind::Library)
        continue;
      CudaPlan plan = CudaPlan::of(*kernel, math);
      if (plan.product)
        continue;
      kernels.insert({plan.convolutions.front(), {plan, math}}); // artifacts share some
      ++own;
    }
    EXPECT_GT(own, 0U) << artifact.name();
  }

  const cudnn::Functions *library = nullptr;
  std::map<std::string, Stored> kernels; // by the text of the planned one
};

} // namespace

// As they are and on another machine's device, each of a kernel's plans is the same engine with the
// same knobs, and none needs more memory than its kernel is planned with.
TEST_F(StoredPlans, LoadByTheVersionThatPlannedThem) {
  std::string planned = CudaTarget("cuda:h200").properties();
  Json other = Json::parse(planned);
  other["driverVer"] = 13020;
  other["deviceName"] = "NVIDIA H200 NVL";
  other["totalGlobalMem"] = 140000000000;
  if (!cudnn::isOwn(*library, kernels.begin()->first))
    GTEST_SKIP() << cudnn::nameOf(*library) << " has not planned them";
  size_t count = 0;
  for (const auto &[first, kernel] : kernels)
    for (const std::string &text : kernel.plan.convolutions) {
      ASSERT_TRUE(cudnn::isOwn(*library, text));
      cudnn::engineOf(*library, text, kernel.math); // throws if it is none that is planned
      for (const std::string &there : {planned, other.dump()}) {
        cudnn::Plan loaded = cudnn::reload(*library, there, cudnn::withProperties(text, there));
        EXPECT_EQ(Json::parse(loaded.json).at("engine"), Json::parse(text).at("engine"));
        EXPECT_LE(loaded.workspaceBytes, kernel.plan.workspaceBytes);
      }
      ++count;
    }
  std::cout << count << " plans of " << kernels.size() << " kernels\n";
}

// The same version plans the same again; another one within the same memory, by the same engine
// and knobs where it has them.
TEST_F(StoredPlans, ArePlannedAgain) {
  std::string properties = CudaTarget("cuda:h200").properties();
  bool isOwn = cudnn::isOwn(*library, kernels.begin()->first);
  size_t same = 0;
  for (const auto &[text, kernel] : kernels) {
    bool isSame = false;
    cudnn::Plan again =
        cudnn::replan(*library, properties, text, kernel.plan.workspaceBytes, kernel.math, isSame);
    same += isSame ? 1 : 0;
    EXPECT_LE(again.workspaceBytes, kernel.plan.workspaceBytes);
    cudnn::engineOf(*library, again.json, kernel.math);
    EXPECT_EQ(Json::parse(again.json).at("operationGraph"), Json::parse(text).at("operationGraph"));
    if (isOwn)
      EXPECT_EQ(again.json, text);
  }
  std::cout << cudnn::nameOf(*library) << " plans " << same << " of " << kernels.size()
            << " kernels by the same engines\n";
  EXPECT_GT(same, isOwn ? kernels.size() - 1 : kernels.size() / 3);
}
