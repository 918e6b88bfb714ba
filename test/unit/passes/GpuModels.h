// Models planned for a GPU, where there is a library that plans for one, and their kernels'
// launches.
#pragma once

#include "passes/codegen/GeneratedKernel.h"
#include "passes/codegen/gpu/GenerateKernels.h"
#include "runtime/core/BackEnd.h"
#include "test/ptx/Emulator.h"
#include "tools/driver/Compilation.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace dlc::test {

struct GpuCase {
  const char *model;
  std::vector<std::string> sets;
  const char *precision;
};

inline void PrintTo(const GpuCase &test, std::ostream *os) {
  *os << test.model << " " << test.precision;
}

/// Has the model of a case, which `Parameter` is or derives from, at stage exec. Without the
/// library the test is skipped, or fails where that is required.
template <typename Parameter> class GpuModelFixture : public testing::TestWithParam<Parameter> {
protected:
  void SetUp() override {
    std::string reason;
    const rt::BackEnd *cuda = rt::findBackEnd("cuda:h200", reason);
    ASSERT_TRUE(cuda) << reason;
    if (!cuda->makePlanner("cuda:h200", 1, reason)) {
      ASSERT_FALSE(std::getenv("DLC_REQUIRE_CUDA")) << reason;
      GTEST_SKIP() << reason;
    }
    const GpuCase &given = this->GetParam();
    options.target = "cuda:h200";
    options.precision = given.precision;
    options.sets = given.sets;
    compilation.emplace(options, llvm::errs());
    ASSERT_TRUE(compilation->load(sourceOf(DLC_MODELS "/" + std::string(given.model) + ".dl")));
    ASSERT_TRUE(compilation->lower(nn::Stage::Exec));
  }

  nn::ModelOp model() { return compilation->model(); }

private:
  CompileOptions options;
  std::optional<Compilation> compilation;
};

/// Of all blocks of a cluster's stage; `addresses` are those of the cluster's buffers.
inline ptx::Launch launchOf(exec::ClusterOp cluster, unsigned index, const GeneratedStage &stage,
                            const llvm::StringMap<Launch> &launches,
                            llvm::ArrayRef<uint64_t> addresses) {
  ptx::Launch launch;
  launch.entry = (cluster.getSymName() + "_" + llvm::Twine(index)).str();
  launch.blocks = static_cast<uint32_t>(llvm::divideCeil(stage.extent, stage.chunk));
  launch.threads = launches.at(launch.entry).threads;
  for (unsigned buffer : stage.buffers)
    launch.arguments.push_back(addresses[buffer]);
  return launch;
}

} // namespace dlc::test
