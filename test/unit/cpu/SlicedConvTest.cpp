// Winograd for volumes: their slices as 2-D convolutions, in bundles.

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

// Bundles of 1 slice, of some with a last one that is not full, and of all; windows that reach
// beyond the volume, that are flat, even and deeper than it.
TEST_F(SlicedConvolution, AgreesWithPlainLoops) {
  const Volumes cases[] = {
      {{1, 16, 3, 65, 64}, {16, 16, 3, 3, 3}, 1}, {{1, 16, 17, 23, 24}, {16, 16, 3, 3, 3}, 1},
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

/// Where an element of `inner` lies in a larger tensor, `low` behind the begin of each spatial
/// axis.
static size_t placeIn(const Tensor &outer, const Tensor &inner, size_t element,
                      const std::vector<int64_t> &low) {
  std::vector<int64_t> index(inner.shape.size());
  auto rest = static_cast<int64_t>(element);
  for (size_t dim = index.size(); dim-- > 0; rest /= inner.shape[dim])
    index[dim] = rest % inner.shape[dim];
  int64_t place = 0;
  for (size_t dim = 0; dim < index.size(); ++dim)
    place = place * outer.shape[dim] + index[dim] + (dim < 2 ? 0 : low[dim - 2]);
  return static_cast<size_t>(place);
}

TEST_F(SlicedConvolution, PadsDepthUnevenly) {
  for (auto [low, high] : {std::pair<int64_t, int64_t>{2, 0}, {0, 1}, {3, 1}}) {
    SCOPED_TRACE(low);
    Tensor x = Tensor::random({2, 16, 4, 8, 8}, 1), w = Tensor::random({16, 16, 3, 3, 3}, 2);
    Tensor padded({2, 16, 4 + low + high, 10, 10});
    for (size_t i = 0; i < x.values.size(); ++i)
      padded.values[placeIn(padded, x, i, {low, 1, 1})] = x.values[i];
    test::ConvShape shape{1, 0, 1, 1};
    Tensor y = test::conv(padded, w, shape), dy = Tensor::random(y.shape, 3), dx(x.shape);
    Tensor dPadded = test::convGradData(dy, w, padded.shape, shape);
    for (size_t i = 0; i < dx.values.size(); ++i)
      dx.values[i] = dPadded.values[placeIn(padded, dx, i, {low, 1, 1})];
    auto request = [&, low = low, high = high](KernelOp op, const std::vector<Tensor> &operands) {
      KernelRequest result = requestOf(op, {{}, {}, 1}, operands);
      result.paddingLow[0] = low;
      result.paddingHigh[0] = high;
      return result;
    };
    expectWinograd(request(KernelOp::Conv, {x, w, y}), {x, w}, y);
    expectWinograd(request(KernelOp::ConvGradData, {dy, w, x}), {dy, w}, dx);
    expectWinograd(request(KernelOp::ConvGradFilter, {x, dy, w}), {x, dy},
                   test::convGradFilter(padded, dy, w.shape, shape));
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

TEST(SlicedConv, ABundleIsOneConvolutionOfStackedSlices) {
  // 18 slices of 32 x 24 are 3 bundles of 6, of some 4096 pixels each.
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

  // Buffers of a bundle lie behind each other in the workspace, and the library's own behind them.
  ASSERT_TRUE(sliced->setLayouts(std::vector{
      *Layout::parse("nChw16c"), *Layout::parse("OIhw16i16o"), *Layout::parse("nChw16c")}));
  std::vector<std::byte> workspace(sliced->workspaceBytes());
  std::vector<void *> buffers =
      sliced->sliceBuffers(std::vector<void *>{nullptr, nullptr, nullptr, workspace.data()});
  auto *end = workspace.data();
  for (size_t operand : {0, 2, 1}) {
    const std::vector<int64_t> &shape = sliced->slice().operands[operand].shape;
    auto *begin = static_cast<std::byte *>(buffers[operand]);
    EXPECT_GE(begin, end);
    end = begin + sizeof(float) * static_cast<size_t>(shape[0] * shape[1] * shape[2] * shape[3]);
  }
  EXPECT_LE(end, buffers[3]);
  EXPECT_EQ(buffers[3], workspace.data() + workspace.size());
  EXPECT_EQ(sliced->copiedBytes(), 4u * (3 * 6 * (48 + 32) * 32 * 24) + 4096 * 14); // in pages
  int calls = 0;
  std::vector<std::byte> dy(size_t{4} * 2 * 16 * 9 * 32 * 24), dx(2 * dy.size());
  std::vector<std::byte> weight(size_t{4} * 16 * 32 * 27);
  std::vector<void *> volumes{dy.data(), weight.data(), dx.data(), workspace.data()};
  sliced->run(volumes, sliced->sliceBuffers(volumes), [&] { ++calls; });
  EXPECT_EQ(calls, 3);

  EXPECT_EQ(SlicedConv::sliceLayout(*Layout::parse("NCdhw16c16n")), Layout::parse("NChw16c16n"));
  EXPECT_EQ(SlicedConv::volumeLayout(*Layout::parse("nChw16c")), Layout::parse("nCdhw16c"));
  EXPECT_FALSE(SlicedConv::sliceLayout(*Layout::parse("ndhwc")));
  // What does not fit in what slices lack.
  KernelRequest filter = requestOf(
      KernelOp::ConvGradFilter, {{}, {}, 1},
      {Tensor({2, 32, 9, 32, 24}), Tensor({2, 16, 9, 32, 24}), Tensor({16, 32, 3, 3, 3})});
  EXPECT_TRUE(SlicedConv::of(filter));
  for (auto change : {+[](KernelRequest &r) { r.operands[0].shape[0] = 1; },
                      +[](KernelRequest &r) { r.operands[0].shape[2] = 10; },
                      +[](KernelRequest &r) { r.operands[1].shape[2] = 5; },
                      +[](KernelRequest &r) { r.paddingHigh[0] = 2; }}) {
    for (KernelRequest request : {forward, data, filter}) {
      if (request.op == KernelOp::ConvGradFilter)
        std::swap(request.operands[1], request.operands[2]); // as the others have them
      change(request);
      if (request.op == KernelOp::ConvGradFilter)
        std::swap(request.operands[1], request.operands[2]);
      EXPECT_FALSE(SlicedConv::of(request));
    }
  }
  KernelRequest image = data;
  for (OperandType &operand : image.operands)
    operand.shape.erase(operand.shape.begin() + 2);
  EXPECT_FALSE(SlicedConv::of(image));
}
