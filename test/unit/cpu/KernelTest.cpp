// Every kind of library kernel, from request to result: each candidate is finalised, rebuilt by the
// device and run, and compared with plain loops over the logical tensors.

#include "test/unit/cpu/ReferenceKernels.h"

#include "runtime/artifact/Writer.h"
#include "runtime/core/Error.h"
#include "runtime/core/TensorIo.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/cpu/CpuPlanner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

using namespace dlc::rt;
using dlc::rt::test::Tensor;

static constexpr unsigned teamThreads = 2;

class CpuKernel : public ::testing::Test {
protected:
  CpuKernel() {
    std::string reason;
    planner = makeCpuPlanner("cpu:native", teamThreads, reason);
    EXPECT_NE(planner, nullptr) << reason;
    dlc::artifact::TargetT target;
    target.name = planner->target().name;
    target.features = planner->target().features;
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(dlc::artifact::Target::Pack(builder, &target));
    device = std::make_unique<CpuDevice>(
        *flatbuffers::GetRoot<dlc::artifact::Target>(builder.GetBufferPointer()), teamThreads);
  }

  /// An artifact with this one kernel.
  static Artifact wrap(const std::vector<uint8_t> &plan, const std::string &implementation) {
    ArtifactWriter writer;
    dlc::artifact::ArtifactT root;
    root.model = "kernel";
    root.target = std::make_unique<dlc::artifact::TargetT>();
    root.target->name = "cpu:native";
    root.kernels.push_back(std::make_unique<dlc::artifact::KernelT>());
    root.kernels[0]->name = "conv.1";
    root.kernels[0]->plan = plan;
    root.kernels[0]->implementation = implementation;
    return Artifact(writer.finish(dlc::artifact::Artifact::Pack(writer.builder(), &root)), "test");
  }

  /// Runs one candidate; `tensors` are the request's operands in logical form, results are
  /// overwritten.
  void runCandidate(const KernelRequest &request, const KernelCandidate &candidate,
                    std::vector<Tensor> &tensors, size_t firstResult) {
    std::string reason;
    std::vector<uint8_t> plan = planner->finalise(request, candidate, reason);
    ASSERT_FALSE(plan.empty()) << reason;
    Artifact artifact = wrap(plan, candidate.implementation);
    Device::Kernel kernel = device->load(artifact, *artifact->kernels()->Get(0));
    std::vector<void *> buffers;
    std::vector<PhysicalType> types;
    for (size_t i = 0; i < tensors.size(); ++i) {
      types.emplace_back(request.operands[i].dtype, request.operands[i].shape,
                         candidate.layouts[i]);
      std::span<std::byte> memory = device->allocate(types[i].bytes());
      if (i < firstResult)
        writeTensor(types[i], tensors[i].values, memory);
      else
        std::ranges::fill(memory, std::byte{0x55});
      buffers.push_back(memory.data());
    }
    if (candidate.workspaceBytes > 0) {
      std::span<std::byte> workspace = device->allocate(candidate.workspaceBytes);
      std::ranges::fill(workspace, std::byte{0x55}); // large numbers of whatever type
      buffers.push_back(workspace.data());
    }
    device->launch(device->bind(kernel, buffers));
    for (size_t i = firstResult; i < tensors.size(); ++i) {
      std::span<std::byte> memory(static_cast<std::byte *>(buffers[i]), types[i].bytes());
      readTensor(types[i], memory, tensors[i].values);
      std::vector<std::byte> zeroPadded(memory.size());
      writeTensor(types[i], tensors[i].values, zeroPadded);
      if (types[i].dtype == DType::F32)
        EXPECT_TRUE(std::ranges::equal(memory, zeroPadded)) << "padding lanes are not zero";
    }
  }

  /// All candidates against `expected`, the request's last operand.
  void expectResult(KernelRequest request, const std::vector<Tensor> &inputs,
                    const Tensor &expected, const char *title) {
    SCOPED_TRACE(title);
    request.threads = teamThreads;
    CandidateList list = planner->candidates(request);
    ASSERT_FALSE(list.candidates.empty()) << list.reason;
    for (const KernelCandidate &candidate : list.candidates) {
      SCOPED_TRACE(candidate.implementation + " " + candidate.layouts[0].toString());
      EXPECT_GT(candidate.nanoseconds, 0);
      std::vector<Tensor> tensors = inputs;
      tensors.emplace_back(expected.shape);
      runCandidate(request, candidate, tensors, inputs.size());
      // Winograd loses a few bits.
      double tolerance = candidate.implementation.find("wino") != std::string::npos ? 1e-3 : 1e-5;
      EXPECT_LT(test::relativeError(tensors.back(), expected), tolerance);
    }
  }

  std::unique_ptr<KernelPlanner> planner;
  std::unique_ptr<CpuDevice> device;
};

struct ConvCase {
  const char *name;
  std::vector<int64_t> x, w;
  int64_t stride, padding, dilation, groups;
};

static const ConvCase convCases[] = {
    {"3x3", {2, 32, 12, 12}, {48, 32, 3, 3}, 1, 1, 1, 1},
    {"one input channel", {3, 1, 14, 14}, {32, 1, 3, 3}, 1, 0, 1, 1},
    {"one output channel, 1x1", {2, 16, 9, 9}, {1, 16, 1, 1}, 1, 0, 1, 1},
    {"ragged channels, stride", {2, 19, 11, 11}, {21, 19, 3, 3}, 2, 1, 1, 1},
    {"dilated", {2, 16, 13, 13}, {16, 16, 3, 3}, 1, 2, 2, 1},
    {"groups", {2, 32, 8, 8}, {32, 8, 3, 3}, 1, 1, 1, 4},
    {"depthwise", {2, 32, 8, 8}, {32, 1, 3, 3}, 1, 1, 1, 32},
    {"1-D", {2, 16, 20}, {32, 16, 3}, 1, 1, 1, 1},
    {"3-D", {1, 16, 6, 6, 6}, {16, 16, 3, 3, 3}, 1, 1, 1, 1},
    {"2x2 stride 2", {2, 32, 8, 8}, {64, 32, 2, 2}, 2, 0, 1, 1},
};

static KernelRequest convRequest(const ConvCase &test, KernelOp op) {
  KernelRequest request;
  request.op = op;
  size_t spatial = test.x.size() - 2;
  request.strides.assign(spatial, test.stride);
  request.paddingLow.assign(spatial, test.padding);
  request.paddingHigh.assign(spatial, test.padding);
  request.dilations.assign(spatial, test.dilation);
  request.groups = test.groups;
  return request;
}

static std::vector<OperandType> operandsOf(const std::vector<Tensor> &tensors) {
  std::vector<OperandType> operands;
  operands.reserve(tensors.size());
  for (const Tensor &tensor : tensors)
    operands.push_back({DType::F32, tensor.shape, {}});
  return operands;
}

TEST_F(CpuKernel, ConvolutionsAndTheirGradientsMatchPlainLoops) {
  for (const ConvCase &test : convCases) {
    test::ConvShape shape{test.stride, test.padding, test.dilation, test.groups};
    Tensor x = Tensor::random(test.x, 1), w = Tensor::random(test.w, 2);
    Tensor y = test::conv(x, w, shape);
    Tensor dy = Tensor::random(y.shape, 3);

    KernelRequest forward = convRequest(test, KernelOp::Conv);
    forward.operands = operandsOf({x, w, y});
    expectResult(forward, {x, w}, y, test.name);

    KernelRequest data = convRequest(test, KernelOp::ConvGradData);
    data.operands = operandsOf({dy, w, x});
    expectResult(data, {dy, w}, test::convGradData(dy, w, x.shape, shape), test.name);

    KernelRequest filter = convRequest(test, KernelOp::ConvGradFilter);
    filter.operands = operandsOf({x, dy, w});
    expectResult(filter, {x, dy}, test::convGradFilter(x, dy, w.shape, shape), test.name);
  }
}

TEST_F(CpuKernel, FilterGradientsReadNoWorkspaceThatNobodyWrote) {
  if (!planner->target().bf16)
    GTEST_SKIP() << "this processor has no bf16 instructions";
  for (int64_t columns : {1, 2, 4}) {
    KernelRequest request;
    request.op = KernelOp::ConvGradFilter;
    request.strides = {3};
    request.paddingLow = request.paddingHigh = request.dilations = {1};
    int64_t results = (columns - 1) / 3 + 1;
    request.operands = {{DType::BF16, {1, 16, columns}, {}},
                        {DType::BF16, {1, 16, results}, {}},
                        {DType::F32, {16, 16, 3}, {}}};
    request.threads = teamThreads;
    CandidateList list = planner->candidates(request);
    ASSERT_FALSE(list.candidates.empty()) << list.reason;
    for (const KernelCandidate &candidate : list.candidates) {
      SCOPED_TRACE(candidate.implementation);
      std::vector<Tensor> tensors{Tensor({1, 16, columns}), Tensor({1, 16, results}),
                                  Tensor({16, 16, 3})};
      std::ranges::fill(tensors[1].values, 1.0f);
      runCandidate(request, candidate, tensors, 2);
      EXPECT_EQ(std::ranges::count(tensors[2].values, 0.0f), 16 * 16 * 3);
    }
  }
}

TEST_F(CpuKernel, BiasAndReluAreApplied) {
  for (const ConvCase &test : {convCases[0], convCases[2], convCases[9]}) {
    test::ConvShape shape{test.stride, test.padding, test.dilation, test.groups};
    Tensor x = Tensor::random(test.x, 1), w = Tensor::random(test.w, 2);
    Tensor y = test::conv(x, w, shape);
    Tensor bias = Tensor::random({test.w[0]}, 4);
    KernelRequest forward = convRequest(test, KernelOp::Conv);
    forward.operands = operandsOf({x, w, bias, y});
    forward.bias = forward.relu = true;
    expectResult(forward, {x, w, bias}, test::addBias(y, bias, true), test.name);

    Tensor dy = Tensor::random(y.shape, 3), dataBias = Tensor::random({test.x[1]}, 5);
    KernelRequest transposed = convRequest(test, KernelOp::ConvGradData);
    transposed.operands = operandsOf({dy, w, dataBias, x});
    transposed.bias = true;
    Tensor expected = test::convGradData(dy, w, x.shape, shape);
    expectResult(transposed, {dy, w, dataBias}, test::addBias(expected, dataBias, false),
                 test.name);
    transposed.relu = true;
    expectResult(transposed, {dy, w, dataBias}, test::addBias(expected, dataBias, true), test.name);
  }
}

TEST_F(CpuKernel, MatrixProductsMatchPlainLoops) {
  for (bool transposeA : {false, true})
    for (bool transposeB : {false, true})
      for (bool bias : {false, true}) {
        Tensor a = Tensor::random({5, 70}, 1), b = Tensor::random({70, 33}, 2);
        Tensor shift = Tensor::random({33}, 3);
        Tensor c = test::matmul(a, b);
        std::vector<Tensor> inputs{transposeA ? test::transposed(a) : a,
                                   transposeB ? test::transposed(b) : b};
        if (bias) {
          inputs.push_back(shift);
          c = test::addBias(c, shift, true);
        }
        KernelRequest request;
        request.op = KernelOp::Matmul;
        request.transposeA = transposeA;
        request.transposeB = transposeB;
        request.bias = request.relu = bias;
        request.operands = operandsOf(inputs);
        request.operands.push_back({DType::F32, c.shape, {}});
        expectResult(request, inputs, c, "matmul");
      }
}

static KernelRequest poolingRequest() {
  KernelRequest request;
  request.op = KernelOp::MaxPool;
  request.kernel = request.strides = {2, 2};
  request.paddingLow = request.paddingHigh = {0, 0};
  request.dilations = {1, 1};
  return request;
}

TEST_F(CpuKernel, PoolingRoutesGradientsToTheMaximum) {
  KernelRequest request = poolingRequest();
  request.threads = teamThreads;
  Tensor x = Tensor::random({2, 19, 8, 8}, 1);
  auto [y, argmax] = test::maxPool(x);
  Tensor dy = Tensor::random(y.shape, 2);
  request.operands = operandsOf({x, y, y});
  request.operands[2].dtype = DType::U8;
  CandidateList list = planner->candidates(request);
  ASSERT_FALSE(list.candidates.empty()) << list.reason;
  for (const KernelCandidate &candidate : list.candidates) {
    SCOPED_TRACE(candidate.layouts[0].toString());
    EXPECT_EQ(candidate.layouts[2], candidate.layouts[1]);
    std::vector<Tensor> forward{x, Tensor(y.shape), Tensor(y.shape)};
    runCandidate(request, candidate, forward, 1);
    EXPECT_EQ(test::relativeError(forward[1], y), 0);

    KernelRequest gradient = request;
    gradient.op = KernelOp::MaxPoolGrad;
    gradient.operands = operandsOf({dy, y, x});
    gradient.operands[1].dtype = DType::U8;
    gradient.operands[0].layout = candidate.layouts[1];
    CandidateList back = planner->candidates(gradient);
    ASSERT_FALSE(back.candidates.empty()) << back.reason;
    EXPECT_EQ(back.candidates[0].layouts[1], candidate.layouts[1]);
    std::vector<Tensor> backward{dy, forward[2], Tensor(x.shape)};
    runCandidate(gradient, back.candidates[0], backward, 2);
    EXPECT_EQ(test::relativeError(backward[2], test::maxPoolGrad(dy, argmax, x.shape)), 0);
  }
}

TEST_F(CpuKernel, InferencePoolingNeedsNoIndex) {
  KernelRequest request = poolingRequest();
  request.training = false;
  Tensor x = Tensor::random({2, 16, 8, 8}, 1);
  Tensor y = test::maxPool(x).first;
  request.operands = operandsOf({x, y});
  expectResult(request, {x}, y, "inference");
}

static KernelRequest reorderRequest(const Tensor &x, const char *from, const char *to) {
  KernelRequest request;
  request.op = KernelOp::Reorder;
  request.operands = operandsOf({x, x});
  request.operands[0].layout = Layout::parse(from);
  request.operands[1].layout = Layout::parse(to);
  return request;
}

TEST_F(CpuKernel, ReordersKeepValuesAndZeroPadding) {
  Tensor x = Tensor::random({3, 19, 5, 4}, 1);
  for (const char *from : {"nchw", "nhwc", "nChw16c"})
    for (const char *to : {"nchw", "nhwc", "nChw8c"})
      expectResult(reorderRequest(x, from, to), {x}, x, to);
}

TEST_F(CpuKernel, WhatIsLoadedDoesNotDependOnWhatWasLoadedBefore) {
  // The two descriptors of a tensor of one channel are equal for the library, its choices are not.
  Tensor x = Tensor::random({1, 1, 2, 4}, 1);
  for (auto [from, to] : {std::pair("nhwc", "nchw"), std::pair("nchw", "nhwc")})
    expectResult(reorderRequest(x, from, to), {x}, x, to);
}

TEST_F(CpuKernel, FixedLayoutsAreHonouredExactly) {
  KernelRequest request = convRequest(convCases[0], KernelOp::Conv);
  request.operands = {{DType::F32, {2, 32, 12, 12}, Layout::parse("nhwc")},
                      {DType::F32, {48, 32, 3, 3}, {}},
                      {DType::F32, {2, 48, 12, 12}, Layout::parse("nhwc")}};
  for (const KernelCandidate &candidate : planner->candidates(request).candidates) {
    EXPECT_EQ(candidate.layouts[0], Layout::parse("nhwc"));
    EXPECT_EQ(candidate.layouts[2], Layout::parse("nhwc"));
  }
}

TEST_F(CpuKernel, StrictMathHasNoWinograd) {
  KernelRequest request = convRequest(convCases[0], KernelOp::Conv);
  request.operands =
      operandsOf({Tensor({2, 32, 12, 12}), Tensor({48, 32, 3, 3}), Tensor({2, 48, 12, 12})});
  request.math = Math::Strict;
  for (const KernelCandidate &candidate : planner->candidates(request).candidates)
    EXPECT_EQ(candidate.implementation.find("wino"), std::string::npos);
}

TEST_F(CpuKernel, RequestsThatFitNothingHaveAReason) {
  KernelRequest empty;
  EXPECT_NE(planner->candidates(empty).reason, "");
  KernelRequest mismatched = convRequest(convCases[0], KernelOp::Conv);
  mismatched.operands =
      operandsOf({Tensor({2, 32, 12, 12}), Tensor({48, 31, 3, 3}), Tensor({2, 48, 12, 12})});
  CandidateList list = planner->candidates(mismatched);
  EXPECT_TRUE(list.candidates.empty());
  EXPECT_NE(list.reason, "");
}

TEST_F(CpuKernel, AnotherImplementationThanPlannedIsRefused) {
  KernelRequest request = convRequest(convCases[0], KernelOp::Conv);
  request.operands =
      operandsOf({Tensor({2, 32, 12, 12}), Tensor({48, 32, 3, 3}), Tensor({2, 48, 12, 12})});
  KernelCandidate candidate = planner->candidates(request).candidates.at(0);
  CpuPlan plan{request, false, "jit:avx9999", candidate.workspaceBytes};
  for (size_t i = 0; i < 3; ++i)
    plan.request.operands[i].layout = candidate.layouts[i];
  Artifact artifact = wrap(plan.serialize(), plan.implementation);
  try {
    device->load(artifact, *artifact->kernels()->Get(0));
    FAIL();
  } catch (const Error &error) {
    std::string message = error.what();
    EXPECT_NE(message.find("conv.1"), std::string::npos) << message;
    EXPECT_NE(message.find("jit:avx9999"), std::string::npos) << message;
  }
  Artifact garbage = wrap({1, 2, 3}, "x");
  EXPECT_THROW(device->load(garbage, *garbage->kernels()->Get(0)), Error);
}

TEST_F(CpuKernel, TargetsAreNamedAndChecked) {
  std::string reason;
  EXPECT_EQ(makeCpuPlanner("cpu:z80", 1, reason), nullptr);
  EXPECT_NE(reason.find("cpu:avx512-bf16"), std::string::npos);
  EXPECT_EQ(makeCpuPlanner("cuda:h200", 1, reason), nullptr);
  EXPECT_NE(planner->target().name, "cpu:native");
  EXPECT_GE(planner->target().vectorBits, 256u);
  EXPECT_GT(planner->generatedCost(1 << 30, 0), planner->generatedCost(1 << 20, 0));
}
