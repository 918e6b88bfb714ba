// Winograd for volumes: their slices as 2-D convolutions, in groups.

#include "test/unit/cpu/KernelFixture.h"

#include "runtime/cpu/SlicedConv.h"

using namespace dlc::rt;
using test::Tensor;

namespace {

struct Volumes {
  std::vector<int64_t> x, w;
  int64_t padding;
};

KernelRequest requestOf(KernelOp op, const Volumes &volumes, const std::vector<Tensor> &operands) {
  KernelRequest request;
  request.op = op;
  request.strides = request.dilations = {1, 1, 1};
  request.paddingLow.assign(3, volumes.padding);
  request.paddingHigh = request.paddingLow;
  for (const Tensor &operand : operands)
    request.operands.push_back({DType::F32, operand.shape, {}});
  request.threads = test::teamThreads;
  return request;
}

bool isWinograd(const KernelCandidate &candidate) {
  return candidate.implementation.find("wino") != std::string::npos;
}

KernelRequest forwardOf(const std::vector<int64_t> &x, const std::vector<int64_t> &w,
                        const std::vector<int64_t> &y) {
  return requestOf(KernelOp::Conv, {x, w, 1}, {Tensor(x), Tensor(w), Tensor(y)});
}

} // namespace

class SlicedConvolution : public test::KernelFixture {
protected:
  void SetUp() override {
    if (planner->target().vectorBits < 512)
      GTEST_SKIP() << "the library has Winograd for AVX-512 alone";
  }

  /// Winograd must be offered and must agree, on whatever memory held before.
  void expectWinograd(KernelRequest request, const std::vector<Tensor> &inputs,
                      const Tensor &expected) {
    CandidateList list = planner->candidates(request);
    auto candidate = std::ranges::find_if(list.candidates, isWinograd);
    ASSERT_NE(candidate, list.candidates.end()) << list.reason;
    std::vector<Tensor> tensors = inputs;
    tensors.emplace_back(expected.shape);
    runCandidate(request, *candidate, tensors, inputs.size());
    EXPECT_LT(test::relativeError(tensors.back(), expected), 1e-5);
  }
};

// Groups of 1 slice, of some with a last one that is not full, and of all; windows that reach
// beyond the volume, that are flat, even and deeper than it.
TEST_F(SlicedConvolution, AgreesWithPlainLoops) {
  const Volumes cases[] = {
      {{1, 32, 3, 65, 64}, {16, 32, 3, 3, 3}, 1}, {{1, 16, 17, 23, 24}, {32, 16, 3, 3, 3}, 1},
      {{2, 32, 4, 8, 9}, {32, 32, 3, 3, 3}, 1},   {{3, 16, 5, 8, 8}, {16, 16, 1, 3, 3}, 1},
      {{2, 16, 6, 9, 8}, {16, 16, 2, 3, 3}, 0},   {{1, 16, 4, 10, 8}, {32, 16, 5, 3, 3}, 1},
      {{2, 48, 1, 12, 12}, {16, 48, 3, 3, 3}, 1}, {{1, 16, 9, 37, 36}, {16, 16, 3, 3, 3}, 0},
  };
  unsigned seed = 0;
  for (const Volumes &volumes : cases) {
    SCOPED_TRACE(seed);
    test::ConvShape shape{1, volumes.padding, 1, 1};
    Tensor x = Tensor::random(volumes.x, ++seed), w = Tensor::random(volumes.w, ++seed);
    Tensor y = test::conv(x, w, shape), dy = Tensor::random(y.shape, ++seed);
    expectWinograd(requestOf(KernelOp::Conv, volumes, {x, w, y}), {x, w}, y);
    expectWinograd(requestOf(KernelOp::ConvGradData, volumes, {dy, w, x}), {dy, w},
                   test::convGradData(dy, w, x.shape, shape));
    expectWinograd(requestOf(KernelOp::ConvGradFilter, volumes, {x, dy, w}), {x, dy},
                   test::convGradFilter(x, dy, w.shape, shape));
  }
}

TEST_F(SlicedConvolution, AddsBiasAndRelu) {
  Volumes volumes{{2, 16, 5, 9, 8}, {16, 16, 3, 3, 3}, 1};
  Tensor x = Tensor::random(volumes.x, 1), w = Tensor::random(volumes.w, 2);
  Tensor bias = Tensor::random({16}, 3);
  Tensor y = test::addBias(test::conv(x, w, {1, 1, 1, 1}), bias, true);
  KernelRequest request = requestOf(KernelOp::Conv, volumes, {x, w, bias, y});
  request.bias = request.relu = true;
  expectWinograd(request, {x, w, bias}, y);
}

TEST_F(SlicedConvolution, IsOfferedForWholeBlocksOfChannelsInFastMathAlone) {
  auto offersWinograd = [&](const KernelRequest &request) {
    return std::ranges::any_of(planner->candidates(request).candidates, isWinograd);
  };
  KernelRequest request = forwardOf({1, 32, 4, 8, 8}, {32, 32, 3, 3, 3}, {1, 32, 4, 8, 8});
  EXPECT_TRUE(offersWinograd(request));
  request.math = Math::Strict;
  EXPECT_FALSE(offersWinograd(request));
  EXPECT_FALSE(offersWinograd(forwardOf({1, 24, 4, 8, 8}, {32, 24, 3, 3, 3}, {1, 32, 4, 8, 8})));
  request = forwardOf({1, 32, 4, 8, 8}, {32, 32, 3, 3, 3}, {1, 32, 2, 8, 8});
  request.strides[0] = 2;
  EXPECT_FALSE(offersWinograd(request));
  request = forwardOf({1, 32, 6, 8, 8}, {32, 32, 3, 3, 3}, {1, 32, 4, 8, 8});
  request.dilations[0] = 2;
  EXPECT_FALSE(offersWinograd(request));
}

TEST(SlicedConv, AGroupIsOneConvolutionOfStackedSlices) {
  // 18 slices of 32 x 24 are 3 groups of 6, of some 4096 pixels each.
  KernelRequest forward = forwardOf({2, 32, 9, 32, 24}, {16, 32, 3, 3, 3}, {2, 16, 9, 32, 24});
  std::optional<SlicedConv> sliced = SlicedConv::of(forward);
  ASSERT_TRUE(sliced);
  const KernelRequest &slice = sliced->slice();
  EXPECT_EQ(slice.operands[0].shape, (std::vector<int64_t>{6, 96, 32, 24}));
  EXPECT_EQ(slice.operands[1].shape, (std::vector<int64_t>{16, 96, 3, 3}));
  EXPECT_EQ(slice.operands[2].shape, (std::vector<int64_t>{6, 16, 32, 24}));
  EXPECT_EQ(slice.strides.size(), 2u);

  KernelRequest data = requestOf(
      KernelOp::ConvGradData, {{}, {}, 1},
      {Tensor({2, 16, 9, 32, 24}), Tensor({16, 32, 3, 3, 3}), Tensor({2, 32, 9, 32, 24})});
  sliced = SlicedConv::of(data);
  ASSERT_TRUE(sliced);
  EXPECT_EQ(sliced->slice().operands[0].shape, (std::vector<int64_t>{6, 48, 32, 24}));
  EXPECT_EQ(sliced->slice().operands[1].shape, (std::vector<int64_t>{48, 32, 3, 3}));
  EXPECT_EQ(sliced->slice().operands[2].shape, (std::vector<int64_t>{6, 32, 32, 24}));

  EXPECT_EQ(SlicedConv::sliceLayout(*Layout::parse("NCdhw16c16n")), Layout::parse("NChw16c16n"));
  EXPECT_EQ(SlicedConv::volumeLayout(*Layout::parse("nChw16c")), Layout::parse("nCdhw16c"));
  EXPECT_FALSE(SlicedConv::sliceLayout(*Layout::parse("ndhwc")));
  // What does not fit in what slices lack.
  for (auto change : {+[](KernelRequest &r) { r.operands[0].shape[0] = 1; },
                      +[](KernelRequest &r) { r.operands[0].shape[2] = 10; },
                      +[](KernelRequest &r) { r.operands[1].shape[2] = 5; },
                      +[](KernelRequest &r) { r.paddingHigh[0] = 2; }}) {
    for (KernelRequest request : {forward, data}) {
      change(request);
      EXPECT_FALSE(SlicedConv::of(request));
    }
  }
  KernelRequest image = data;
  for (OperandType &operand : image.operands)
    operand.shape.erase(operand.shape.begin() + 2);
  EXPECT_FALSE(SlicedConv::of(image));
}
