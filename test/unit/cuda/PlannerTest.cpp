// Plans of the real cuDNN, which needs no GPU for that.

#include "runtime/artifact/LayoutIo.h"
#include "runtime/cuda/CudaPlanner.h"
#include "runtime/cuda/plans/CudaPlan.h"
#include "test/unit/ErrorOf.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>

using namespace dlc;
using namespace dlc::rt;
using dlc::rt::test::errorOf;
using Json = nlohmann::ordered_json;
using Shape = std::vector<int64_t>;

namespace {

constexpr const char *devices[] = {"cuda:a100", "cuda:h100",    "cuda:h200",
                                   "cuda:b200", "cuda:rtx4090", "cuda:rtx5090"};
constexpr KernelOp convolutions[] = {KernelOp::Conv, KernelOp::ConvGradData,
                                     KernelOp::ConvGradFilter};
constexpr DType floats[] = {DType::F32, DType::BF16, DType::F16};

/// A convolution of x [N, C, S...] and w [O, C, K...] with padding that keeps extents at stride 1.
KernelRequest convolution(KernelOp op, DType dtype, const Shape &x, const Shape &w,
                          int64_t stride = 1) {
  KernelRequest request;
  request.op = op;
  size_t spatial = x.size() - 2;
  Shape y{x[0], w[0]};
  for (size_t i = 0; i < spatial; ++i) {
    request.paddingLow.push_back((w[2 + i] - 1) / 2);
    request.paddingHigh.push_back(w[2 + i] / 2);
    y.push_back((x[2 + i] - 1) / stride + 1);
  }
  request.strides.assign(spatial, stride);
  request.dilations.assign(spatial, 1);
  auto operand = [&](const Shape &shape) { return OperandType{dtype, shape, std::nullopt}; };
  if (op == KernelOp::Conv)
    request.operands = {operand(x), operand(w), operand(y)};
  else if (op == KernelOp::ConvGradData)
    request.operands = {operand(y), operand(w), operand(x)};
  else
    request.operands = {operand(x), operand(y), operand(w)};
  return request;
}

KernelRequest withBias(KernelRequest request, DType dtype, bool relu) {
  request.bias = true;
  request.relu = relu;
  int64_t channels = request.operands.back().shape[1];
  request.operands.insert(request.operands.begin() + 2, {dtype, {channels}, std::nullopt});
  return request;
}

KernelRequest product(DType factors, DType result, int64_t m, int64_t n, int64_t k) {
  KernelRequest request;
  request.op = KernelOp::Matmul;
  request.operands = {{factors, {m, k}, std::nullopt},
                      {factors, {k, n}, std::nullopt},
                      {result, {m, n}, std::nullopt}};
  return request;
}

class CudaPlanning : public testing::Test {
protected:
  void SetUp() override {
    std::string reason;
    library = cudnn::open(reason);
    if (library)
      return;
    if (std::getenv("DLC_REQUIRE_CUDA"))
      FAIL() << "DLC_REQUIRE_CUDA is set: " << reason;
    GTEST_SKIP() << reason;
  }

  std::unique_ptr<KernelPlanner> open(const std::string &target) {
    std::string reason;
    std::unique_ptr<KernelPlanner> planner = makeCudaPlanner(target, 1, reason);
    EXPECT_TRUE(planner) << reason;
    return planner;
  }

  /// The plan of the best candidate.
  CudaPlan plan(KernelPlanner &planner, const KernelRequest &request) {
    CandidateList list = planner.candidates(request);
    if (list.candidates.empty()) {
      ADD_FAILURE() << list.reason;
      return {};
    }
    std::string reason;
    std::vector<uint8_t> bytes = planner.finalise(request, list.candidates.front(), reason);
    EXPECT_FALSE(bytes.empty()) << reason;
    return CudaPlan::deserialize(bytes, "k");
  }

  const cudnn::Functions *library = nullptr;
};

} // namespace

TEST_F(CudaPlanning, OffersConvolutionsOfEachKindTypeAndDevice) {
  for (const char *device : devices) {
    std::unique_ptr<KernelPlanner> planner = open(device);
    for (KernelOp op : convolutions)
      for (DType dtype : floats)
        for (bool isVolume : {false, true}) {
          Shape x = isVolume ? Shape{2, 32, 8, 16, 16} : Shape{4, 32, 28, 28};
          Shape w = isVolume ? Shape{64, 32, 3, 3, 3} : Shape{64, 32, 3, 3};
          CandidateList list = planner->candidates(convolution(op, dtype, x, w));
          ASSERT_FALSE(list.candidates.empty()) << device << ": " << list.reason;
          const KernelCandidate &best = list.candidates.front();
          EXPECT_TRUE(best.implementation.starts_with("cudnn:")) << best.implementation;
          EXPECT_EQ(best.layouts.front().toString(), isVolume ? "ndhwc" : "nhwc");
          EXPECT_GE(best.workspaceBytes, CudaPlanner::slabBytes);
          EXPECT_EQ(best.flops, isVolume ? 2U * 2 * 8 * 16 * 16 * 64 * 32 * 27
                                         : 2U * 4 * 28 * 28 * 64 * 32 * 9);
        }
  }
}

TEST_F(CudaPlanning, StoresTheGraphOfTheRequest) {
  std::unique_ptr<KernelPlanner> planner = open("cuda:h200");
  CudaPlan stored = plan(*planner, convolution(KernelOp::ConvGradFilter, DType::BF16,
                                               {4, 32, 28, 28}, {64, 32, 3, 3}, 2));
  ASSERT_GE(stored.convolutions.size(), 2U); // alternatives
  EXPECT_LE(stored.convolutions.size(), 1 + CudaPlanner::mostAlternatives);
  Json graph = Json::parse(stored.convolutions.front()).at("operationGraph");
  const Json &node = graph.at("nodes").at(0);
  EXPECT_EQ(node.at("operation"), "CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR");
  EXPECT_EQ(node.at("stride"), Json::array({2, 2}));
  EXPECT_EQ(node.at("pad"), Json::array({1, 1}));
  std::map<std::string, Json> tensors;
  for (const Json &tensor : graph.at("tensors"))
    tensors[tensor.at("name")] = tensor;
  // Operand i is tensor i + 1: x, dy, dw.
  EXPECT_EQ(tensors["1"].at("dim"), Json::array({4, 32, 28, 28}));
  EXPECT_EQ(tensors["1"].at("stride"), Json::array({28 * 28 * 32, 1, 28 * 32, 32}));
  EXPECT_EQ(tensors["2"].at("dim"), Json::array({4, 64, 14, 14}));
  EXPECT_EQ(tensors["3"].at("dim"), Json::array({64, 32, 3, 3}));
  EXPECT_EQ(tensors["3"].at("stride"), Json::array({288, 1, 96, 32}));
  EXPECT_EQ(tensors["3"].at("dataType"), "CUDNN_DATA_BFLOAT16");
  // Each alternative is another engine or other knobs, for the same graph.
  for (size_t i = 1; i < stored.convolutions.size(); ++i) {
    Json other = Json::parse(stored.convolutions[i]);
    EXPECT_EQ(other.at("operationGraph"), graph);
    EXPECT_NE(other.at("engine"), Json::parse(stored.convolutions.front()).at("engine"));
  }
}

TEST_F(CudaPlanning, ReloadsPlansForTheDeviceThatIsThere) {
  std::unique_ptr<KernelPlanner> planner = open("cuda:h200");
  std::string planned = CudaTarget("cuda:h200").properties();
  Json there = Json::parse(planned);
  there["driverVer"] = 13020;
  there["deviceName"] = "NVIDIA H200 NVL";
  there["totalGlobalMem"] = 140000000000;
  for (KernelOp op : convolutions) {
    CudaPlan stored = plan(*planner, convolution(op, DType::BF16, {4, 32, 28, 28}, {64, 32, 3, 3}));
    for (const std::string &text : stored.convolutions) {
      cudnn::Plan again = cudnn::reload(*library, planned, text);
      EXPECT_LE(again.workspaceBytes, stored.workspaceBytes);
      EXPECT_EQ(Json::parse(again.json).at("engine"), Json::parse(text).at("engine"));
      // cuDNN 9.19 refuses another driver than the text speaks of, 9.26 does not.
      std::string refusal = errorOf([&] { cudnn::reload(*library, there.dump(), text); });
      if (library->getVersion() < 92000)
        EXPECT_NE(refusal.find("cannot finalize"), std::string::npos) << refusal;
      cudnn::Plan elsewhere =
          cudnn::reload(*library, there.dump(), cudnn::withProperties(text, there.dump()));
      EXPECT_EQ(elsewhere.workspaceBytes, again.workspaceBytes);
      EXPECT_EQ(Json::parse(elsewhere.json).at("engine"), Json::parse(text).at("engine"));
      // The library would take an engine for another architecture.
      EXPECT_EQ(
          errorOf([&] { cudnn::withProperties(text, CudaTarget("cuda:a100").properties()); }),
          "planned for compute capability 9.0, this device has 8.0; compile the model for it");
    }
  }
}

// The library says of an engine whether it repeats its bits, which a text with another's number
// does not.
TEST_F(CudaPlanning, LoadsAdmissibleEnginesAlone) {
  std::unique_ptr<KernelPlanner> planner = open("cuda:h200");
  const char *refusal = "gives other bits each time, is compiled where it runs, or multiplies";
  for (KernelOp op : convolutions) {
    KernelRequest request = convolution(op, DType::F32, {4, 32, 28, 28}, {64, 32, 3, 3});
    CudaPlan fast = plan(*planner, request);
    request.math = Math::Strict;
    CudaPlan strict = plan(*planner, request);
    size_t ofTensorCores = 0;
    for (const std::string &text : fast.convolutions) {
      cudnn::Engine engine = cudnn::engineOf(*library, text, Math::Fast);
      EXPECT_EQ(engine.index, Json::parse(text).at("engine").at("engineId"));
      bool isStrict = engine.isAdmissible(DType::F32, Math::Strict);
      std::string said = errorOf([&] { cudnn::engineOf(*library, text, Math::Strict); });
      EXPECT_EQ(said.find(refusal) == std::string::npos, isStrict) << said;
      ofTensorCores += isStrict ? 0 : 1;
    }
    EXPECT_GT(ofTensorCores, 0U);
    for (const std::string &text : strict.convolutions)
      cudnn::engineOf(*library, text, Math::Strict);
    size_t known = 0, refused = 0;
    Json other = Json::parse(strict.convolutions.front());
    for (int64_t number = 0; number < 70; ++number) {
      other.at("engine").at("engineId") = number;
      std::string said = errorOf([&] { cudnn::engineOf(*library, other.dump(), Math::Fast); });
      known += said.find("finalize") == std::string::npos ? 1 : 0;
      refused += said.find(refusal) != std::string::npos ? 1 : 0;
    }
    EXPECT_GT(known, refused);
    EXPECT_GT(refused, 0U);
  }
}

// What a plan holds is enough to plan it again: the same text comes of it.
TEST_F(CudaPlanning, PlansStoredGraphsAgain) {
  std::unique_ptr<KernelPlanner> planner = open("cuda:h200");
  std::string properties = CudaTarget("cuda:h200").properties();
  std::vector<KernelRequest> requests;
  for (KernelOp op : convolutions) {
    requests.push_back(convolution(op, DType::BF16, {4, 32, 28, 28}, {64, 32, 3, 3}, 2));
    requests.push_back(convolution(op, DType::F32, {2, 16, 8, 8, 8}, {32, 16, 3, 3, 3}));
    requests.push_back(convolution(op, DType::BF16, {4, 32, 28, 28}, {64, 32, 2, 4})); // one-sided
  }
  for (bool relu : {false, true})
    requests.push_back(
        withBias(convolution(KernelOp::Conv, DType::F16, {4, 32, 28, 28}, {64, 32, 3, 3}),
                 DType::F16, relu));
  for (KernelRequest &request : requests) {
    request.math = Math::Strict;
    std::string stored = plan(*planner, request).convolutions.front();
    bool isSame = false;
    auto replanned = [&](const std::string &text) {
      return cudnn::replan(*library, properties, text, CudaPlanner::slabBytes, request.math, isSame)
          .json;
    };
    EXPECT_EQ(replanned(stored), stored);
    EXPECT_TRUE(isSame);
    EXPECT_TRUE(cudnn::isOwn(*library, stored));

    // Of an engine that is not offered the best one takes the place.
    Json other = Json::parse(stored);
    other["engine"]["engineId"] = 100000;
    other["cudnnVersion"] = 1;
    EXPECT_FALSE(cudnn::isOwn(*library, other.dump()));
    EXPECT_EQ(replanned(other.dump()), stored);
    EXPECT_FALSE(isSame);
  }
  Json flipped = Json::parse(plan(*planner, requests.back()).convolutions.front());
  flipped["operationGraph"]["nodes"][1]["pointwiseMode"] = "CUDNN_POINTWISE_MUL";
  EXPECT_NE(errorOf([&] {
              cudnn::Graph::stored(*library, flipped.dump());
            }).find("a stored plan is damaged: it has a pointwise node"),
            std::string::npos);
  flipped["operationGraph"].erase("tensors");
  EXPECT_NE(errorOf([&] { cudnn::Graph::stored(*library, flipped.dump()); }).find("damaged"),
            std::string::npos);
}

TEST_F(CudaPlanning, RefusesDamagedTexts) {
  std::string properties = CudaTarget("cuda:h200").properties();
  EXPECT_NE(errorOf([&] { cudnn::reload(*library, properties, "{}"); }).find("cuDNN"),
            std::string::npos);
  EXPECT_EQ(errorOf([&] { cudnn::withProperties("{}", properties); }).find("a stored plan is"), 0U);
  EXPECT_EQ(errorOf([&] { cudnn::withProperties("[", properties); }).find("a stored plan is"), 0U);
  std::unique_ptr<KernelPlanner> planner = open("cuda:h200");
  Json named = Json::parse(
      plan(*planner, convolution(KernelOp::Conv, DType::BF16, {4, 32, 28, 28}, {64, 32, 3, 3}))
          .convolutions.front());
  named["GPUProfile"]["deviceName"] = std::string(256, 'A');
  EXPECT_EQ(errorOf([&] { cudnn::engineOf(*library, named.dump(), Math::Fast); }),
            "a device has a name of at most 255 characters");
}

TEST_F(CudaPlanning, TakesNoEngineThatIsCompiledVariesOrRounds) {
  using cudnn::BehaviorNote;
  using cudnn::NumericalNote;
  auto takes = [](std::vector<NumericalNote> numerical, std::vector<BehaviorNote> behavior,
                  DType dtype, Math math) {
    return cudnn::Engine{1, std::move(numerical), std::move(behavior)}.isAdmissible(dtype, math);
  };
  using enum NumericalNote;
  EXPECT_TRUE(takes({TensorCore}, {}, DType::BF16, Math::Strict));
  EXPECT_FALSE(takes({TensorCore}, {BehaviorNote::RuntimeCompilation}, DType::BF16, Math::Fast));
  EXPECT_FALSE(takes({TensorCore, Nondeterministic}, {}, DType::BF16, Math::Fast));
  EXPECT_FALSE(takes({ReducedPrecisionReduction}, {}, DType::F16, Math::Fast));
  EXPECT_TRUE(takes({TensorCore, DownConvertInputs}, {}, DType::F32, Math::Fast)); // TF32
  EXPECT_FALSE(takes({TensorCore}, {}, DType::F32, Math::Strict));
  EXPECT_FALSE(takes({DownConvertInputs}, {}, DType::F32, Math::Strict));
  for (NumericalNote note : {Fft, Winograd, WinogradTile4x4, WinogradTile6x6, WinogradTile13x13}) {
    EXPECT_TRUE(takes({note}, {}, DType::F32, Math::Fast));
    EXPECT_FALSE(takes({note}, {}, DType::F32, Math::Strict));
  }
}

TEST_F(CudaPlanning, MultipliesStrictlyWithoutTensorCores) {
  std::unique_ptr<KernelPlanner> planner = open("cuda:h200");
  for (KernelOp op : convolutions) {
    KernelRequest request = convolution(op, DType::F32, {8, 64, 28, 28}, {64, 64, 3, 3});
    double fast = planner->candidates(request).candidates.at(0).nanoseconds;
    request.math = Math::Strict;
    double strict = planner->candidates(request).candidates.at(0).nanoseconds;
    EXPECT_GT(strict, 3 * fast);
  }
}

TEST_F(CudaPlanning, PadsInputChannelsOf16BitTensors) {
  std::unique_ptr<KernelPlanner> planner = open("cuda:h200");
  for (KernelOp op : {KernelOp::Conv, KernelOp::ConvGradFilter}) {
    KernelRequest request =
        convolution(op, DType::BF16, {16, 3, 224, 224}, {64, 3, 7, 7}, /*stride=*/2);
    const KernelCandidate best = planner->candidates(request).candidates.at(0);
    size_t weight = *weightOperand(op);
    EXPECT_EQ(best.layouts[0].toString(), "nhwC8c");
    EXPECT_EQ(best.layouts[weight].toString(), "nhwC8c");
    EXPECT_EQ(best.layouts[op == KernelOp::Conv ? 2 : 1].toString(), "nhwc");
    CudaPlan stored = plan(*planner, request);
    Json tensor = Json::parse(stored.convolutions.at(0)).at("operationGraph").at("tensors").at(0);
    EXPECT_EQ(tensor.at("dim"), Json::array({16, 8, 224, 224}));
    // A fixed layout is kept.
    request.operands[0].layout = layoutIn(LayoutFamily::ChannelsLast, 4, 8);
    EXPECT_EQ(planner->candidates(request).candidates.at(0).layouts[weight].toString(), "nhwc");
    request.operands[0].layout = Layout::rowMajor(4);
    EXPECT_EQ(planner->candidates(request).reason,
              "cuDNN's convolutions are planned channels last");
  }
}

TEST_F(CudaPlanning, SaysWhichEpiloguesThereAre) {
  std::unique_ptr<KernelPlanner> planner = open("cuda:h200");
  KernelRequest forward = convolution(KernelOp::Conv, DType::BF16, {4, 32, 28, 28}, {64, 32, 3, 3});
  auto offers = [&](const KernelRequest &request) {
    return !planner->candidates(request).candidates.empty();
  };
  EXPECT_TRUE(offers(withBias(forward, DType::BF16, false)));
  EXPECT_TRUE(offers(withBias(forward, DType::BF16, true)));
  EXPECT_FALSE(offers(withBias(forward, DType::F32, true))); // of the tensors' type only
  KernelRequest relu = forward;
  relu.relu = true;
  EXPECT_EQ(planner->candidates(relu).reason, "cuDNN has no convolution with a ReLU and no bias");
  KernelRequest transposed =
      convolution(KernelOp::ConvGradData, DType::BF16, {4, 32, 28, 28}, {64, 32, 3, 3}, 2);
  EXPECT_TRUE(offers(transposed));
  EXPECT_FALSE(offers(withBias(transposed, DType::BF16, false)));
  KernelRequest wide =
      convolution(KernelOp::ConvGradFilter, DType::BF16, {4, 32, 28, 28}, {64, 32, 3, 3});
  wide.operands.back().dtype = DType::F32;
  EXPECT_FALSE(offers(wide));
}

TEST_F(CudaPlanning, StoresTheChainOfABiasAndAReLU) {
  std::unique_ptr<KernelPlanner> planner = open("cuda:a100");
  CudaPlan stored = plan(
      *planner, withBias(convolution(KernelOp::Conv, DType::BF16, {4, 32, 28, 28}, {64, 32, 3, 3}),
                         DType::BF16, true));
  Json graph = Json::parse(stored.convolutions.at(0)).at("operationGraph");
  ASSERT_EQ(graph.at("nodes").size(), 3U);
  size_t storedTensors = 0;
  for (const Json &tensor : graph.at("tensors")) {
    if (tensor.at("name") == "3") {
      EXPECT_EQ(tensor.at("dim"), Json::array({1, 64, 1, 1}));
    }
    if (!tensor.at("isVirtual"))
      ++storedTensors;
    else
      EXPECT_EQ(tensor.at("dataType"), "CUDNN_DATA_FLOAT");
  }
  EXPECT_EQ(storedTensors, 4U);
}

TEST_F(CudaPlanning, PlansProducts) {
  std::unique_ptr<KernelPlanner> planner = open("cuda:h200");
  KernelRequest request = product(DType::BF16, DType::F32, 32, 1000, 2048);
  request.transposeB = true;
  request.operands[1].shape = {1000, 2048};
  request.bias = true;
  request.operands.insert(request.operands.begin() + 2, {DType::F32, {1000}, std::nullopt});
  CudaPlan stored = plan(*planner, request);
  EXPECT_EQ(stored.workspaceBytes, CudaPlanner::slabBytes);
  EXPECT_EQ(stored.product, (ProductPlan{32, 1000, 2048, DType::BF16, DType::F32, false, true, true,
                                         false, false}));
  // A bias is of the result's type, factors are of one.
  request.operands[2].dtype = DType::BF16;
  EXPECT_TRUE(planner->candidates(request).candidates.empty());
  request = product(DType::BF16, DType::F16, 8, 8, 8);
  EXPECT_TRUE(planner->candidates(request).candidates.empty());
}

// Images of N positions and C channels are matrices [N, C]: y = x w^T, dx = dy w, dw = dy^T x.
TEST_F(CudaPlanning, PlansConvolutionsOfOneElementAsProducts) {
  std::unique_ptr<KernelPlanner> planner = open("cuda:h200");
  auto of = [&](KernelOp op, DType dtype = DType::BF16) {
    return convolution(op, dtype, {4, 64, 28, 14}, {256, 64, 1, 1});
  };
  constexpr uint64_t positions = 4 * 28 * 14;
  auto expect = [&](const KernelRequest &request, const ProductPlan &wanted) {
    EXPECT_EQ(plan(*planner, request).product, wanted);
  };
  constexpr DType bf16 = DType::BF16, f32 = DType::F32;
  KernelRequest forward = of(KernelOp::Conv);
  expect(forward, {positions, 256, 64, bf16, bf16, false, true, false, false, false, false});
  expect(withBias(forward, bf16, true),
         {positions, 256, 64, bf16, bf16, false, true, true, true, false, false});
  expect(of(KernelOp::ConvGradData),
         {positions, 64, 256, bf16, bf16, false, false, false, false, false, false});
  expect(of(KernelOp::ConvGradFilter),
         {256, 64, positions, bf16, bf16, true, false, false, false, false, true});
  KernelRequest strict = of(KernelOp::Conv, f32);
  strict.math = Math::Strict;
  expect(strict, {positions, 256, 64, f32, f32, false, true, false, false, true, false});

  // All others are cuDNN's.
  auto isProduct = [&](const KernelRequest &request) {
    return plan(*planner, request).product.has_value();
  };
  EXPECT_FALSE(isProduct(convolution(KernelOp::Conv, bf16, {4, 64, 28, 28}, {64, 64, 1, 1}, 2)));
  EXPECT_FALSE(isProduct(convolution(KernelOp::Conv, bf16, {4, 64, 28, 28}, {64, 64, 3, 1})));
  EXPECT_FALSE(isProduct(convolution(KernelOp::Conv, bf16, {4, 3, 28, 28}, {64, 3, 1, 1})));
  KernelRequest grouped = convolution(KernelOp::Conv, bf16, {4, 64, 28, 28}, {64, 32, 1, 1});
  grouped.groups = 2;
  EXPECT_FALSE(isProduct(grouped));
  KernelRequest padded = forward;
  padded.paddingLow[0] = 1;
  padded.operands[2].shape[2] += 1;
  EXPECT_FALSE(isProduct(padded));
}

// What the description of the H100 says that it is worth.
TEST_F(CudaPlanning, PlansEnginesWithoutClustersFirst) {
  std::unique_ptr<KernelPlanner> planner = open("cuda:h100");
  for (KernelOp op : convolutions)
    for (DType dtype : {DType::BF16, DType::F32}) {
      KernelRequest request = convolution(op, dtype, {32, 128, 28, 28}, {128, 128, 3, 3});
      std::string first = plan(*planner, request).convolutions.front();
      EXPECT_EQ(first.find("TILE_CGA"), std::string::npos) << first;
      // Not for the price of tensor cores.
      double fast = planner->candidates(request).candidates.at(0).nanoseconds;
      request.math = Math::Strict;
      if (dtype == DType::F32) {
        EXPECT_LT(3 * fast, planner->candidates(request).candidates.at(0).nanoseconds);
      }
    }
}

/// Whether the plan is taken for a kernel with these operands.
static bool fits(const CudaPlan &plan, const std::vector<OperandType> &operands) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<artifact::TensorType>> types;
  for (const auto &[dtype, shape, layout] : operands)
    types.push_back(
        writeTensorType(builder, dtype, shape, layout.value_or(Layout::rowMajor(shape.size()))));
  builder.Finish(artifact::CreateKernel(builder, builder.CreateString("k"),
                                        artifact::KernelKind::Library, 0, 0, 0, 0, 1, 1,
                                        builder.CreateVector(types)));
  const auto &kernel = *flatbuffers::GetRoot<artifact::Kernel>(builder.GetBufferPointer());
  return errorOf([&] { plan.requireOperands(kernel); }) == "no error";
}

TEST_F(CudaPlanning, FitsItsOperandsAlone) {
  std::unique_ptr<KernelPlanner> planner = open("cuda:h200");
  KernelRequest padded = convolution(KernelOp::Conv, DType::BF16, {2, 3, 9, 8}, {32, 3, 3, 3});
  KernelRequest grouped =
      convolution(KernelOp::ConvGradFilter, DType::F32, {2, 16, 4, 6, 8}, {32, 8, 3, 3, 3});
  grouped.groups = 2;
  for (KernelRequest request :
       {padded, withBias(padded, DType::BF16, true), grouped,
        product(DType::F32, DType::F32, 4, 8, 16),
        convolution(KernelOp::ConvGradData, DType::BF16, {4, 64, 6, 8}, {32, 64, 1, 1})}) {
    CudaPlan stored = plan(*planner, request);
    const KernelCandidate best = planner->candidates(request).candidates.at(0);
    for (size_t i = 0; i < request.operands.size(); ++i)
      request.operands[i].layout = best.layouts[i];
    std::vector<OperandType> exact = request.operands;
    exact.push_back({DType::U8, {CudaPlanner::slabBytes}, std::nullopt});
    EXPECT_TRUE(fits(stored, exact));
    for (size_t i = 0; i < exact.size(); ++i) {
      std::vector<OperandType> other = exact;
      --other[i].shape.front();
      EXPECT_FALSE(fits(stored, other)) << "a smaller operand " << i;
    }
    for (size_t i = 0; i < request.operands.size(); ++i) {
      std::vector<OperandType> other = exact;
      ++other[i].shape.back();
      EXPECT_FALSE(fits(stored, other)) << "a larger operand " << i;
      other = exact;
      other[i].dtype = other[i].dtype == DType::F32 ? DType::BF16 : DType::F32;
      EXPECT_FALSE(fits(stored, other)) << "another type of operand " << i;
    }
    EXPECT_FALSE(fits(stored, {exact.begin(), exact.end() - 1}));
    EXPECT_FALSE(fits(stored, {}));
    if (stored.product)
      continue;
    std::vector<OperandType> other = exact;
    other[0].layout = Layout::rowMajor(other[0].shape.size());
    EXPECT_FALSE(fits(stored, other)) << "another layout";
    stored.convolutions.front() = "{}";
    EXPECT_FALSE(fits(stored, exact));
  }
}

TEST_F(CudaPlanning, LeavesPoolingAndReordersToGeneratedCode) {
  std::unique_ptr<KernelPlanner> planner = open("cuda:h200");
  for (KernelOp op : {KernelOp::MaxPool, KernelOp::MaxPoolGrad, KernelOp::Reorder}) {
    KernelRequest request = convolution(KernelOp::Conv, DType::BF16, {4, 8, 8, 8}, {8, 8, 3, 3});
    request.op = op;
    EXPECT_EQ(planner->candidates(request).reason,
              "NVIDIA's libraries have no kernel for it that is there already");
  }
}

TEST(CudaPlanBytes, RefuseDamage) {
  CudaPlan plan;
  plan.convolutions = {"text", "another"};
  plan.workspaceBytes = 5;
  std::vector<uint8_t> bytes = plan.serialize();
  CudaPlan again = CudaPlan::deserialize(bytes, "k");
  EXPECT_EQ(again.convolutions, plan.convolutions);
  EXPECT_EQ(again.workspaceBytes, 5U);
  EXPECT_FALSE(again.product);
  auto refusal = [](const std::vector<uint8_t> &damaged) {
    return errorOf([&] { CudaPlan::deserialize(damaged, "k"); });
  };
  EXPECT_EQ(refusal({}), "the plan of kernel k is damaged");
  bytes.resize(bytes.size() / 2);
  EXPECT_EQ(refusal(bytes), "the plan of kernel k is damaged");
  plan.convolutions.clear();
  EXPECT_EQ(refusal(plan.serialize()), "the plan of kernel k has no engine");
  plan.product = ProductPlan{0, 1, 1};
  EXPECT_EQ(refusal(plan.serialize()), "the plan of kernel k states no product");
}
