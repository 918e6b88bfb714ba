// Models planned for a GPU, where there is a library that plans for one, and their kernels'
// launches.
#pragma once

#include "passes/codegen/GeneratedKernel.h"
#include "passes/codegen/gpu/GenerateKernels.h"
#include "runtime/core/BackEnd.h"
#include "test/ptx/Emulator.h"
#include "tools/driver/Compilation.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace dlc::test {

/// Where a model has no parameter for its widths: what stands in its files in the place of what.
using Edits = std::vector<std::pair<std::string, std::string>>;

struct GpuCase {
  const char *model;
  std::vector<std::string> sets;
  const char *precision;
  Edits edits = {};
  uint64_t bucketBytes = 0; // 0: as the link has it
};

/// A folder of copies of all models, gone with this object.
class EditedModels {
public:
  explicit EditedModels(const Edits &edits)
      : folder(std::filesystem::temp_directory_path() /
               ("dlc-models-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder);
    std::vector<bool> isUsed(edits.size());
    for (const auto &entry : std::filesystem::directory_iterator(DLC_MODELS)) {
      if (entry.path().extension() != ".dl")
        continue;
      std::ifstream file(entry.path());
      std::string text(std::istreambuf_iterator<char>(file), {});
      for (auto [i, edit] : llvm::enumerate(edits))
        for (size_t at = 0; (at = text.find(edit.first, at)) != std::string::npos;) {
          text.replace(at, edit.first.size(), edit.second);
          at += edit.second.size();
          isUsed[i] = true;
        }
      std::ofstream(folder / entry.path().filename()) << text;
    }
    EXPECT_TRUE(llvm::all_of(isUsed, [](bool used) { return used; })) << "an edit of nothing";
  }
  ~EditedModels() { std::filesystem::remove_all(folder); }

  std::string path() const { return folder.string(); }

private:
  std::filesystem::path folder;
};

inline void PrintTo(const GpuCase &test, std::ostream *os) {
  *os << test.model << " " << test.precision << (test.edits.empty() ? "" : " of fewer channels");
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
    if (given.bucketBytes > 0)
      options.bucketSize = given.bucketBytes;
    compilation.emplace(options, llvm::errs());
    std::optional<EditedModels> edited;
    if (!given.edits.empty())
      edited.emplace(given.edits);
    std::string folder = edited ? edited->path() : DLC_MODELS;
    ASSERT_TRUE(compilation->load(sourceOf(folder + "/" + given.model + ".dl")));
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
