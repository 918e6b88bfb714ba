// Every kind of library kernel, from request to result: each candidate is finalised, rebuilt by the
// device and run, and compared with plain loops over the logical tensors.

#include "test/unit/ErrorOf.h"
#include "test/unit/cpu/KernelFixture.h"

#include "runtime/artifact/Error.h"
#include "runtime/cpu/plan_generated.h"

using namespace dlc::rt;
using test::teamThreads;
using test::Tensor;

class CpuKernel : public test::KernelFixture {};

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
  if (!planner->target().multiplies(DType::BF16))
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

// The library rounds what each window adds, unless it widens planes first.
TEST_F(CpuKernel, GradientsOfOverlappingWindowsIn16BitsAreNotTheLibrarys) {
  if (!planner->target().multiplies(DType::BF16))
    GTEST_SKIP() << "this processor has no bf16 instructions";
  auto offers = [&](int64_t window, DType type, const char *layout) {
    KernelRequest request = poolingRequest();
    request.op = KernelOp::MaxPoolGrad;
    request.kernel = {window, window};
    request.paddingLow = request.paddingHigh = {window / 2, window / 2};
    int64_t out = (8 + 2 * (window / 2) - window) / 2 + 1;
    OperandType small{type, {2, 16, out, out}, Layout::parse(layout)}, index = small;
    index.dtype = DType::U8;
    request.operands = {small, index, {type, {2, 16, 8, 8}, Layout::parse(layout)}};
    return !planner->candidates(request).candidates.empty();
  };
  EXPECT_FALSE(offers(3, DType::BF16, "nhwc"));
  EXPECT_TRUE(offers(3, DType::BF16, "nchw"));
  EXPECT_TRUE(offers(3, DType::F32, "nhwc"));
  EXPECT_TRUE(offers(2, DType::BF16, "nhwc"));
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
  CandidateList list = planner->candidates(request);
  ASSERT_FALSE(list.candidates.empty()) << list.reason;
  for (const KernelCandidate &candidate : list.candidates) {
    EXPECT_EQ(candidate.layouts[0], Layout::parse("nhwc"));
    EXPECT_EQ(candidate.layouts[2], Layout::parse("nhwc"));
  }
}

TEST_F(CpuKernel, StrictMathHasNoWinograd) {
  KernelRequest request = convRequest(convCases[0], KernelOp::Conv);
  request.operands =
      operandsOf({Tensor({2, 32, 12, 12}), Tensor({48, 32, 3, 3}), Tensor({2, 48, 12, 12})});
  request.math = Math::Strict;
  CandidateList list = planner->candidates(request);
  ASSERT_FALSE(list.candidates.empty()) << list.reason;
  for (const KernelCandidate &candidate : list.candidates)
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
  CpuPlan plan{request, "jit:avx9999", candidate.workspaceBytes};
  for (size_t i = 0; i < 3; ++i)
    plan.request.operands[i].layout = candidate.layouts[i];
  Artifact artifact = wrap(plan.serialize(), plan.implementation, plan);
  try {
    device->load(artifact, *artifact->kernels()->Get(0));
    FAIL();
  } catch (const Error &error) {
    std::string message = error.what();
    EXPECT_NE(message.find("conv.1"), std::string::npos) << message;
    EXPECT_NE(message.find("jit:avx9999"), std::string::npos) << message;
  }
  Artifact garbage = wrap({1, 2, 3}, "x", {});
  EXPECT_THROW(device->load(garbage, *garbage->kernels()->Get(0)), Error);
}

// A vector that is taken to begin one word later: the first element's lower half is the count.
TEST_F(CpuKernel, APlanOfNumbersThatAreNotAlignedIsRefused) {
  KernelRequest request = convRequest(convCases[0], KernelOp::Conv);
  request.operands =
      operandsOf({Tensor({2, 32, 12, 12}), Tensor({48, 32, 3, 3}), Tensor({2, 48, 12, 12})});
  std::string reason;
  std::vector<uint8_t> bytes =
      planner->finalise(request, planner->candidates(request).candidates.at(0), reason);
  CpuPlan::deserialize(bytes, "conv.1");
  const auto *table = flatbuffers::GetRoot<flatbuffers::Table>(bytes.data());
  bytes[static_cast<size_t>(table->GetAddressOf(dlc::cpu::Plan::VT_STRIDES) - bytes.data())] += 4;
  EXPECT_EQ(test::errorOf([&] { CpuPlan::deserialize(bytes, "conv.1"); }),
            "kernel conv.1: its plan is not a CPU plan");
}

// The library takes sizes on trust: a plan of more than its buffers hold must not be loaded.
TEST_F(CpuKernel, APlanForOtherBuffersIsRefused) {
  KernelRequest request = convRequest(convCases[0], KernelOp::Conv);
  request.threads = test::teamThreads;
  request.operands =
      operandsOf({Tensor({2, 32, 12, 12}), Tensor({48, 32, 3, 3}), Tensor({2, 48, 12, 12})});
  KernelCandidate candidate = planner->candidates(request).candidates.at(0);
  CpuPlan plan{request, candidate.implementation, candidate.workspaceBytes};
  for (size_t i = 0; i < 3; ++i)
    plan.request.operands[i].layout = candidate.layouts[i];
  auto messageOf = [&](auto change) {
    CpuPlan given = plan;
    change(given);
    Artifact artifact = wrap(plan.serialize(), plan.implementation, given);
    return test::errorOf([&] { device->load(artifact, *artifact->kernels()->Get(0)); });
  };
  EXPECT_EQ(messageOf([](CpuPlan &) {}), "no error");
  const std::string another = "kernel conv.1 was planned for another type of buffer 0";
  EXPECT_EQ(messageOf([](CpuPlan &p) { p.request.operands[0].shape[0] = 1; }).find(another), 0u);
  EXPECT_EQ(messageOf([](CpuPlan &p) { p.request.operands[0].dtype = DType::BF16; }).find(another),
            0u);
  EXPECT_EQ(messageOf([](CpuPlan &p) {
              p.request.operands[0].layout = Layout{{1, 0, 2, 3}, {}};
            }).find(another),
            0u);
  EXPECT_NE(messageOf([](CpuPlan &p) { p.workspaceBytes += 64; }).find("was planned for"),
            std::string::npos);
  EXPECT_NE(messageOf([](CpuPlan &p) { p.request.op = KernelOp::MaxPool; }) // writes two
                .find("another access to buffer 1"),
            std::string::npos);
}

TEST_F(CpuKernel, PlansThatNoOperationCanHaveAreRefused) {
  KernelRequest request = convRequest(convCases[0], KernelOp::Conv);
  request.operands =
      operandsOf({Tensor({2, 32, 12, 12}), Tensor({48, 32, 3, 3}), Tensor({2, 48, 12, 12})});
  EXPECT_TRUE(CpuPlan::isConsistent(request));
  for (auto change : std::initializer_list<void (*)(KernelRequest &)>{
           [](KernelRequest &r) { r.strides[0] = 0; }, [](KernelRequest &r) { r.dilations[0] = 0; },
           [](KernelRequest &r) { r.paddingLow[1] = -1; }, [](KernelRequest &r) { r.groups = 5; },
           [](KernelRequest &r) { r.operands[1].shape[0] = 0; },
           // Windows of another number than there are results.
           [](KernelRequest &r) { r.strides[0] = (int64_t{3} << 32) + 1; },
           [](KernelRequest &r) { r.strides[0] = 2; },
           [](KernelRequest &r) { r.dilations[1] = int64_t{1} << 40; },
           [](KernelRequest &r) { r.paddingLow[0] += 1; },
           [](KernelRequest &r) { r.operands[2].shape[3] = 11; },
           [](KernelRequest &r) { r.paddingHigh[0] = INT64_MAX; }}) {
    KernelRequest changed = request;
    change(changed);
    EXPECT_FALSE(CpuPlan::isConsistent(changed));
  }
  // A filter gradient has no bias, whose one axis its weight would have.
  request.op = KernelOp::ConvGradFilter;
  request.bias = true;
  request.operands[2].shape = {48};
  EXPECT_FALSE(CpuPlan::isConsistent(request));
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
