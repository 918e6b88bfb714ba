// Convolutions of random shapes and their gradients, f32 and bf16: every candidate against plain
// loops over the same numbers.

#include "test/unit/cpu/KernelFixture.h"

#include <bit>
#include <numeric>
#include <random>

using namespace dlc::rt;
using test::Tensor;

namespace {

struct RandomConv {
  KernelRequest request;
  Tensor x{{1}}, w{{1}}, y{{1}}, dy{{1}};
  test::ConvShape shape;
  std::string name;
};

/// To the nearest bf16, ties to even.
Tensor rounded(Tensor tensor) {
  for (float &value : tensor.values) {
    auto bits = std::bit_cast<uint32_t>(value);
    bits += 0x7fff + (bits >> 16 & 1);
    value = std::bit_cast<float>(bits & 0xffff0000);
  }
  return tensor;
}

std::string describe(const RandomConv &conv) {
  std::string text;
  for (int64_t extent : conv.x.shape)
    text += std::to_string(extent) + " ";
  return text + "to " + std::to_string(conv.w.shape[0]) + ", window " +
         std::to_string(conv.w.shape.back()) + ", stride " + std::to_string(conv.shape.stride) +
         ", padding " + std::to_string(conv.shape.padding) + ", dilation " +
         std::to_string(conv.shape.dilation);
}

RandomConv makeConv(const std::vector<int64_t> &x, const std::vector<int64_t> &w,
                    const test::ConvShape &shape, unsigned seed) {
  size_t spatial = x.size() - 2;
  RandomConv conv;
  conv.shape = shape;
  conv.request.strides.assign(spatial, shape.stride);
  conv.request.paddingLow.assign(spatial, shape.padding);
  conv.request.paddingHigh.assign(spatial, shape.padding);
  conv.request.dilations.assign(spatial, shape.dilation);
  conv.request.threads = test::teamThreads;
  conv.x = rounded(Tensor::random(x, seed));
  conv.w = rounded(Tensor::random(w, seed + 1));
  conv.y = test::conv(conv.x, conv.w, shape);
  conv.dy = rounded(Tensor::random(conv.y.shape, seed + 2));
  conv.name = "seed " + std::to_string(seed) + ": " + describe(conv);
  return conv;
}

RandomConv randomConv(unsigned seed) {
  std::mt19937 engine(seed);
  auto pick = [&](std::initializer_list<int64_t> values) {
    return values.begin()[engine() % values.size()];
  };
  size_t spatial = static_cast<size_t>(pick({1, 2, 2, 2, 3}));
  std::vector<int64_t> x{pick({1, 2, 4}), pick({1, 3, 8, 10, 16, 19, 20, 32, 40, 48, 64})};
  std::vector<int64_t> w{pick({1, 2, 10, 16, 20, 23, 32, 40, 64}), x[1]};
  int64_t window = pick({1, 2, 3, 3, 3, 5});
  test::ConvShape shape = {pick({1, 1, 2, 3}), pick({0, window / 2}), pick({1, 1, 1, 2}), 1};
  int64_t reach = (window - 1) * shape.dilation + 1;
  int64_t least = std::max<int64_t>(1, reach - 2 * shape.padding);
  for (size_t i = 0; i < spatial; ++i) {
    x.push_back(least + pick({0, 1, 2, 3, 5, 8, 13}));
    w.push_back(window);
  }
  return makeConv(x, w, shape, seed);
}

} // namespace

class RandomConvolution : public test::KernelFixture {
protected:
  void expectResult(KernelRequest request, KernelOp op, DType type,
                    const std::vector<Tensor> &inputs, const Tensor &expected) {
    bool rounds = type == DType::BF16 && op != KernelOp::ConvGradFilter;
    request.op = op;
    for (const Tensor &input : inputs)
      request.operands.push_back({type, input.shape, {}});
    request.operands.push_back({rounds ? type : DType::F32, expected.shape, {}});
    CandidateList list = planner->candidates(request);
    // Without its defective kernels, too, the library has one for every request.
    ASSERT_FALSE(list.candidates.empty()) << list.reason;
    for (const KernelCandidate &candidate : list.candidates) {
      SCOPED_TRACE(candidate.implementation + " " + candidate.layouts[0].toString() + " " +
                   candidate.layouts[1].toString() + " " + candidate.layouts[2].toString());
      std::vector<Tensor> tensors = inputs;
      tensors.emplace_back(expected.shape);
      runCandidate(request, candidate, tensors, inputs.size());
      bool winograd = candidate.implementation.find("wino") != std::string::npos;
      double tolerance = rounds ? 4e-3 : winograd ? 1e-3 : 1e-5;
      EXPECT_LT(test::relativeError(tensors.back(), expected), tolerance);
    }
  }

  void expectGradients(DType type) {
    std::vector<unsigned> seeds(24);
    std::iota(seeds.begin(), seeds.end(), 0);
    // Each of these, and the one behind them, has met a defect of oneDNN 2.6.3
    // (runtime/cpu/KnownDefects.cpp) on some CPU.
    seeds.insert(seeds.end(), {26, 59, 81, 121, 201, 280, 372});
    std::vector<RandomConv> convs;
    for (unsigned seed : seeds)
      convs.push_back(randomConv(seed));
    convs.push_back(makeConv({2, 24, 64, 32}, {16, 24, 3, 3}, {1, 2, 2, 1}, 0));
    convs.push_back(makeConv({2, 40, 33, 64}, {8, 40, 3, 3}, {1, 2, 2, 1}, 0));
    convs.push_back(makeConv({3, 16, 5, 6}, {5, 16, 1, 1}, {1, 0, 1, 1}, 0));
    convs.push_back(makeConv({3, 80, 3, 3, 5}, {48, 80, 1, 1, 1}, {1, 0, 1, 1}, 0));
    for (const RandomConv &conv : convs) {
      SCOPED_TRACE(conv.name);
      expectResult(conv.request, KernelOp::Conv, type, {conv.x, conv.w}, conv.y);
      expectResult(conv.request, KernelOp::ConvGradData, type, {conv.dy, conv.w},
                   test::convGradData(conv.dy, conv.w, conv.x.shape, conv.shape));
      expectResult(conv.request, KernelOp::ConvGradFilter, type, {conv.x, conv.dy},
                   test::convGradFilter(conv.x, conv.dy, conv.w.shape, conv.shape));
    }
  }
};

TEST_F(RandomConvolution, F32MatchesPlainLoops) { expectGradients(DType::F32); }

TEST_F(RandomConvolution, BF16MatchesPlainLoops) {
  if (!planner->target().multiplies(DType::BF16))
    GTEST_SKIP() << "this processor has no bf16 instructions";
  expectGradients(DType::BF16);
}

// Which is also the library's, and compared above.
TEST_F(RandomConvolution, FilterGradientOfOnePixelIsAlsoAProduct) {
  auto isProductOffered = [&](const std::vector<int64_t> &x, const std::vector<int64_t> &w,
                              const test::ConvShape &shape, DType type = DType::F32) {
    RandomConv conv = makeConv(x, w, shape, 0);
    KernelRequest request = conv.request;
    request.op = KernelOp::ConvGradFilter;
    request.groups = shape.groups;
    request.operands = {
        {type, conv.x.shape, {}}, {type, conv.dy.shape, {}}, {DType::F32, conv.w.shape, {}}};
    CandidateList list = planner->candidates(request);
    EXPECT_FALSE(list.candidates.empty()) << list.reason;
    return std::ranges::any_of(list.candidates, [](const auto &candidate) {
      return candidate.implementation.starts_with("product:");
    });
  };
  EXPECT_TRUE(isProductOffered({3, 16, 5, 6}, {5, 16, 1, 1}, {1, 0, 1, 1}));
  EXPECT_TRUE(isProductOffered({2, 80, 3, 4, 5}, {48, 80, 1, 1, 1}, {1, 0, 1, 1}));
  if (planner->target().multiplies(DType::BF16)) {
    EXPECT_TRUE(isProductOffered({3, 16, 5, 6}, {5, 16, 1, 1}, {1, 0, 1, 1}, DType::BF16));
  }
  EXPECT_FALSE(isProductOffered({3, 16, 5, 6}, {5, 16, 1, 1}, {2, 0, 1, 1})) << "steps";
  EXPECT_FALSE(isProductOffered({3, 16, 5, 6}, {5, 16, 1, 1}, {1, 1, 1, 1})) << "padding";
  EXPECT_FALSE(isProductOffered({3, 16, 5, 6}, {5, 16, 1, 3}, {1, 0, 1, 1})) << "window";
  EXPECT_FALSE(isProductOffered({3, 16, 5, 6}, {8, 8, 1, 1}, {1, 0, 1, 2})) << "groups";
}
