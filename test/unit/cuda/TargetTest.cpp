#include "runtime/cuda/CudaTarget.h"
#include "test/unit/ErrorOf.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

using namespace dlc::rt;
using dlc::rt::test::errorOf;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char *names[] = {"a100", "h100", "h200", "b200", "rtx4090", "rtx5090"};

/// A description in a file of its own, gone with the test.
class DescriptionFile {
public:
  explicit DescriptionFile(const std::string &text)
      : path(std::filesystem::temp_directory_path() /
             ("dlc-gpu-" + std::to_string(getpid()) + ".json")) {
    std::ofstream(path) << text;
  }
  ~DescriptionFile() { std::filesystem::remove(path); }

  std::string target() const { return "cuda:" + path.string(); }
  std::string refusal() const {
    return errorOf([&] { CudaTarget{target()}; });
  }

private:
  std::filesystem::path path;
};

Json h200() {
  std::ifstream file(DLC_CUDA_TARGETS "/h200.json");
  return Json::parse(file);
}

} // namespace

TEST(CudaTarget, KnowsDevicesAndWhereTheirFiguresAreFrom) {
  const unsigned capabilities[] = {80, 90, 90, 100, 89, 120};
  for (size_t i = 0; i < std::size(names); ++i) {
    CudaTarget target(std::string("cuda:") + names[i]);
    EXPECT_EQ(target.architecture(), capabilities[i]) << names[i];
    EXPECT_NE(target.source().find("NVIDIA"), std::string::npos) << names[i];
    EXPECT_GT(target.memoryBytes(), uint64_t{16} << 30) << names[i];
    EXPECT_LT(target.memoryBytes(), uint64_t{192} << 30) << names[i];
  }
}

TEST(CudaTarget, PricesKernelsByTheSlowerOfArithmeticAndMemory) {
  Json table = h200();
  table["tflops"] = {{"bf16", 1000}, {"f16", 500}, {"tf32", 250}, {"f32", 50}};
  table["bandwidth_gb_per_s"] = 4000;
  table["shares"] = {{"bandwidth", 0.5},   {"product", 0.5}, {"convolution", 0.25},
                     {"unaligned", 0.125}, {"strict", 0.5},  {"simt", 1.0}};
  table["kernel_overhead_ns"] = 10;
  table["whole_channels"] = 64;
  DescriptionFile file(table.dump());
  CudaTarget target(file.target());
  EXPECT_DOUBLE_EQ(target.kernelCost(DType::BF16, Unit::Product, 5'000'000, 0), 10 + 10);
  EXPECT_DOUBLE_EQ(target.kernelCost(DType::F16, Unit::Product, 5'000'000, 0), 10 + 20);
  EXPECT_DOUBLE_EQ(target.kernelCost(DType::F32, Unit::Product, 5'000'000, 0), 10 + 40);
  EXPECT_DOUBLE_EQ(target.kernelCost(DType::BF16, Unit::Convolution, 5'000'000, 0), 10 + 20);
  EXPECT_DOUBLE_EQ(target.kernelCost(DType::BF16, Unit::Unaligned, 5'000'000, 0), 50);
  EXPECT_DOUBLE_EQ(target.kernelCost(DType::F32, Unit::Simt, 5'000'000, 0), 10 + 100);
  EXPECT_DOUBLE_EQ(target.kernelCost(DType::F32, Unit::StrictConvolution, 5'000'000, 0), 10 + 200);
  EXPECT_DOUBLE_EQ(target.kernelCost(DType::BF16, Unit::Product, 5'000'000, 40'000), 30);
  auto convolution = [&](int64_t channels) {
    return target.convolutionCost(DType::BF16, Unit::Convolution, 5'000'000, 0, channels);
  };
  EXPECT_DOUBLE_EQ(convolution(64), 10 + 20);
  EXPECT_DOUBLE_EQ(convolution(256), 10 + 20);
  EXPECT_DOUBLE_EQ(convolution(32), 10 + 40);
  EXPECT_DOUBLE_EQ(convolution(1), 10 + 80); // as 16
}

TEST(CudaTarget, RefusesNamesDevicesAndDescriptions) {
  EXPECT_EQ(errorOf([] { CudaTarget("cuda:x100"); }),
            "unknown target 'cuda:x100'; known are cuda:a100, cuda:b200, cuda:h100, cuda:h200, "
            "cuda:rtx4090, cuda:rtx5090 and cuda:FILE.json");
  EXPECT_EQ(errorOf([] { CudaTarget("cuda:/nowhere/v.json"); }),
            "cannot open the target description /nowhere/v.json");
  const std::string tooOld = " multiplies no bf16, in which cuDNN has no plans for it, and kernels "
                             "are generated for sm_80 (A100) and newer";
  Json volta = h200();
  volta["properties"]["deviceVer"] = 700;
  volta["properties"]["deviceName"] = "Tesla V100";
  EXPECT_EQ(DescriptionFile(volta.dump()).refusal(), "cannot plan for Tesla V100: sm_70" + tooOld);
  // So are devices that have no description.
  for (auto [name, architecture] :
       {std::pair("v100", "sm_70"), {"p100", "sm_60"}, {"t4", "sm_75"}, {"rtx2080ti", "sm_75"}})
    EXPECT_EQ(errorOf([&] { CudaTarget(std::string("cuda:") + name); }),
              std::string("cannot plan for ") + name + ": " + architecture + tooOld);
  EXPECT_NE(DescriptionFile("{").refusal().find("parse error"), std::string::npos);
}

TEST(CudaTarget, NeedsEveryFieldOfADescription) {
  Json whole = h200();
  EXPECT_EQ(DescriptionFile(whole.dump()).refusal(), "no error");
  Json flat = whole.flatten();
  std::vector<Json::json_pointer> fields;
  for (const auto &[path, value] : flat.items())
    if (Json::json_pointer field(path); whole[field.parent_pointer()].is_object())
      fields.push_back(field);
  EXPECT_GT(fields.size(), 35U);
  for (const Json::json_pointer &field : fields) {
    Json broken = whole;
    broken[field.parent_pointer()].erase(field.back());
    std::string refusal = DescriptionFile(broken.dump()).refusal();
    EXPECT_NE(refusal.find("'" + field.back() + "'"), std::string::npos)
        << field.to_string() << ": " << refusal;
  }
  Json negative = whole;
  negative["tflops"]["bf16"] = -1;
  auto refusalOf = [](const Json &description) {
    std::string refusal = DescriptionFile(description.dump()).refusal();
    return refusal.substr(refusal.find(".json: ") + 7);
  };
  EXPECT_EQ(refusalOf(negative), "'bf16' must be positive");
  negative["tflops"]["bf16"] = nullptr;
  EXPECT_EQ(refusalOf(negative), "'bf16' must be positive");
  Json other = whole;
  other["shares"]["simt"] = 1.5;
  EXPECT_EQ(refusalOf(other), "'simt' must be a share of a peak, from 0.001 to 1");
  other = whole;
  other["properties"]["warpSize"] = "32";
  EXPECT_EQ(refusalOf(other), "'warpSize' must be such as 32");
  for (const Json &wrong : {Json(-1), Json(0), Json(31.5), Json::array({32})}) {
    other["properties"]["warpSize"] = wrong;
    EXPECT_EQ(refusalOf(other), "'warpSize' must be such as 32") << wrong;
  }
  other["properties"]["warpSize"] = int64_t{1} << 31;
  EXPECT_EQ(refusalOf(other), "'warpSize' must be such as 32");
  other["properties"]["warpSize"] = 32;
  other["properties"]["deviceName"] = std::string(255, 'A');
  EXPECT_EQ(DescriptionFile(other.dump()).refusal(), "no error");
  other["properties"]["deviceName"] = std::string(256, 'A');
  EXPECT_EQ(refusalOf(other).find("'deviceName' must be such as"), 0U);
  other["properties"]["deviceName"] = "NVIDIA H200";
  for (const Json &wrong : {Json(1024), Json::array({1024, 1024}), Json::array({1024, 0, 64})}) {
    other["properties"]["maxBlockSize"] = wrong;
    EXPECT_EQ(refusalOf(other), "'maxBlockSize' must be such as [1024,1024,64]") << wrong;
  }
}
