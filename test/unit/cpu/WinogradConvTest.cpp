// Winograd: images and volumes, beside plain loops.

#include "test/unit/ErrorOf.h"
#include "test/unit/cpu/KernelFixture.h"

#include "runtime/artifact/Error.h"
#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/CpuMemory.h"
#include "runtime/cpu/kernels/WinogradConv.h"

#include <bit>

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
  request.strides.assign(operands[0].shape.size() - 2, 1);
  request.dilations = request.strides;
  request.paddingLow.assign(request.strides.size(), volumes.padding);
  request.paddingHigh = request.paddingLow;
  for (const Tensor &operand : operands)
    request.operands.push_back({DType::F32, operand.shape, {}});
  request.threads = test::teamThreads;
  return request;
}

bool isWinograd(const KernelCandidate &candidate) {
  return WinogradConv::isName(candidate.implementation);
}

KernelRequest forwardOf(const std::vector<int64_t> &x, const std::vector<int64_t> &w,
                        const std::vector<int64_t> &y) {
  return requestOf(KernelOp::Conv, {x, w, 1}, {Tensor(x), Tensor(w), Tensor(y)});
}

} // namespace

class WinogradConvolution : public test::KernelFixture {
protected:
  /// The code for the processor at hand.
  const char *ours() const { return WinogradConv::nameFor(planner->target().vectorBits); }

  /// Winograd must be offered and must agree, on whatever memory held before.
  void expectWinograd(KernelRequest request, const std::vector<Tensor> &inputs,
                      const Tensor &expected) {
    CandidateList list = planner->candidates(request);
    auto candidate = std::ranges::find_if(list.candidates, isWinograd);
    ASSERT_NE(candidate, list.candidates.end()) << list.reason;
    std::vector<Tensor> tensors = inputs;
    tensors.emplace_back(expected.shape);
    runCandidate(request, *candidate, tensors, inputs.size());
    EXPECT_LT(test::relativeError(tensors.back(), expected), tolerance);
  }

  /// All three convolutions of it.
  void expectAll(const Volumes &volumes, unsigned seed, DType activations = DType::F32) {
    test::ConvShape shape{1, volumes.padding, 1, 1};
    bool isNarrow = activations == DType::BF16;
    auto random = [&](const std::vector<int64_t> &extents) {
      Tensor tensor = Tensor::random(extents, ++seed);
      for (float &value : tensor.values)
        value =
            isNarrow ? std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xFFFF0000U) : value;
      return tensor;
    };
    Tensor x = random(volumes.x), w = random(volumes.w);
    Tensor y = test::conv(x, w, shape), dy = random(y.shape);
    auto request = [&](KernelOp op, const std::vector<Tensor> &operands) {
      KernelRequest made = requestOf(op, volumes, operands);
      for (size_t i = 0; i < operands.size(); ++i)
        if (op != KernelOp::ConvGradFilter || i < 2)
          made.operands[i].dtype = activations;
      return made;
    };
    tolerance = isNarrow ? 4e-3 : 1e-5; // of a result that is rounded to 8 bits
    expectWinograd(request(KernelOp::Conv, {x, w, y}), {x, w}, y);
    expectWinograd(request(KernelOp::ConvGradData, {dy, w, x}), {dy, w},
                   test::convGradData(dy, w, x.shape, shape));
    tolerance = 1e-5; // a filter gradient is not
    expectWinograd(request(KernelOp::ConvGradFilter, {x, dy, w}), {x, dy},
                   test::convGradFilter(x, dy, w.shape, shape));
  }

  /// On teams of 1 to 3 that the request is for; false if the code is another processor's.
  bool expectEqualBits(const char *implementation, KernelOp op, const Volumes &volumes) {
    test::ConvShape shape{1, volumes.padding, 1, 1};
    Tensor x = Tensor::random(volumes.x, 1), w = Tensor::random(volumes.w, 2);
    Tensor y = Tensor::random(test::conv(x, w, shape).shape, 3);
    std::vector<Tensor> tensors =
        op == KernelOp::Conv ? std::vector{x, w, test::conv(x, w, shape)}
        : op == KernelOp::ConvGradData
            ? std::vector{y, w, test::convGradData(y, w, x.shape, shape)}
            : std::vector{x, y, test::convGradFilter(x, y, w.shape, shape)};
    KernelRequest request = requestOf(op, volumes, tensors);
    request.threads = 3;
    auto layouts = WinogradConv::layouts(implementation, request, LayoutFamily::ChannelsLast);
    if (!layouts)
      return false;
    std::vector<std::vector<float>> memory;
    for (size_t i = 0; i < 3; ++i) {
      request.operands[i].layout = (*layouts)[i];
      PhysicalType type(DType::F32, request.operands[i].shape, (*layouts)[i]);
      memory.emplace_back(type.bytes() / sizeof(float) + 16);
      writeTensor(type, tensors[i].values,
                  std::as_writable_bytes(std::span(memory[i])).first(type.bytes()));
    }
    std::vector<float> expected = memory[2];
    std::unique_ptr<const OwnKernel> conv = WinogradConv::of(implementation, request);
    CpuMemory workspace(conv->workspaceBytes());
    auto resultOn = [&](unsigned team) {
      setTeamSize(team);
      std::fill(memory[2].begin(), memory[2].end() - 16, -1.0F);
      std::vector<void *> buffers{memory[0].data(), memory[1].data(), memory[2].data(),
                                  workspace.bytes().data()};
      conv->run(buffers);
      setTeamSize(test::teamThreads);
      return memory[2];
    };
    std::vector<float> one = resultOn(1);
    EXPECT_EQ(one, resultOn(3));
    EXPECT_EQ(one, resultOn(2));
    Tensor got({static_cast<int64_t>(one.size())}), wanted(got.shape);
    got.values = one;
    wanted.values = expected;
    EXPECT_LT(test::relativeError(got, wanted), 1e-5);
    return true;
  }

  double tolerance = 1e-5;
};

// Steps of 1 slice, of some with a last one that is not full, and of all; windows that reach beyond
// the volume, that are flat, even and deeper than it.
TEST_F(WinogradConvolution, AgreesWithPlainLoops) {
  const Volumes cases[] = {
      {{1, 16, 3, 65, 64}, {16, 16, 3, 3, 3}, 1}, {{1, 16, 17, 23, 24}, {16, 16, 3, 3, 3}, 1},
      {{2, 32, 4, 8, 9}, {32, 32, 3, 3, 3}, 1},   {{3, 16, 5, 8, 8}, {16, 16, 1, 3, 3}, 1},
      {{2, 16, 6, 9, 8}, {16, 16, 2, 3, 3}, 0},   {{1, 16, 4, 10, 8}, {32, 16, 5, 3, 3}, 1},
      {{2, 48, 1, 12, 12}, {16, 48, 3, 3, 3}, 1}, {{1, 16, 9, 37, 36}, {16, 16, 3, 3, 3}, 0},
  };
  unsigned seed = 0;
  for (const Volumes &volumes : cases) {
    SCOPED_TRACE(seed);
    expectAll(volumes, seed += 3);
  }
}

// Strips of one thread and of the team, of a few groups of tiles and of more, and results of
// several panels and bundles; more tiles than a whole number of groups.
TEST_F(WinogradConvolution, AgreesWithPlainLoopsOnImages) {
  const Volumes cases[] = {
      {{3, 16, 41, 39}, {32, 16, 3, 3}, 1},  {{2, 48, 65, 30}, {80, 48, 3, 3}, 1},
      {{5, 32, 7, 7}, {112, 32, 3, 3}, 1},   {{2, 16, 9, 12}, {16, 16, 3, 3}, 0},
      {{1, 256, 9, 37}, {80, 256, 3, 3}, 1}, {{1, 128, 4, 581}, {272, 128, 3, 3}, 1},
      {{1, 512, 6, 7}, {640, 512, 3, 3}, 1}, {{2, 16, 5, 3}, {16, 16, 3, 3}, 2},
  };
  unsigned seed = 100;
  for (const Volumes &volumes : cases) {
    SCOPED_TRACE(seed);
    expectAll(volumes, seed += 3);
  }
  // Sums of one vector, and of fewer beside more.
  int64_t block = planner->target().vectorBits / 32;
  expectAll({{3, 3 * block, 17, 11}, {5 * block, 3 * block, 3, 3}, 1}, 130);
  expectAll({{2, block, 9, 13}, {block, block, 3, 3}, 1}, 140);
}

TEST_F(WinogradConvolution, WidensNarrowOperandsAndSumsInF32) {
  if (!planner->target().multiplies(DType::BF16))
    GTEST_SKIP() << "bf16 is for targets that multiply it";
  expectAll({{3, 16, 41, 39}, {32, 16, 3, 3}, 1}, 200, DType::BF16);
  expectAll({{2, 32, 4, 8, 9}, {32, 32, 3, 3, 3}, 1}, 210, DType::BF16);
}

// Each thread has a place in the workspace.
TEST_F(WinogradConvolution, RefusesTeamsThatItWasNotPlannedFor) {
  KernelRequest request = forwardOf({4, 32, 64, 64}, {32, 32, 3, 3}, {4, 32, 64, 64});
  request.threads = test::teamThreads - 1;
  CandidateList list = planner->candidates(request);
  auto candidate = std::ranges::find_if(list.candidates, isWinograd);
  ASSERT_NE(candidate, list.candidates.end()) << list.reason;
  std::string reason;
  std::vector<uint8_t> plan = planner->finalise(request, *candidate, reason);
  Artifact artifact = wrap(plan, candidate->implementation, CpuPlan::deserialize(plan, "conv.1"));
  try {
    device->load(artifact, *artifact->kernels()->Get(0));
    FAIL() << "loaded";
  } catch (const dlc::rt::Error &error) {
    EXPECT_NE(std::string(error.what()).find("was planned for teams of 1 to 1, not 2"),
              std::string::npos)
        << error.what();
  }
  request.threads = 0;
  EXPECT_FALSE(WinogradConv::layouts(ours(), request, LayoutFamily::Blocked));
}

TEST_F(WinogradConvolution, RefusesAnotherWorkspaceThanItTakes) {
  KernelRequest request = forwardOf({4, 32, 64, 64}, {32, 32, 3, 3}, {4, 32, 64, 64});
  request.threads = test::teamThreads;
  CandidateList list = planner->candidates(request);
  auto candidate = std::ranges::find_if(list.candidates, isWinograd);
  ASSERT_NE(candidate, list.candidates.end()) << list.reason;
  std::string reason;
  CpuPlan plan = CpuPlan::deserialize(planner->finalise(request, *candidate, reason), "conv.1");
  plan.workspaceBytes += 64;
  Artifact artifact = wrap(plan.serialize(), candidate->implementation, plan);
  std::string said = test::errorOf([&] { device->load(artifact, *artifact->kernels()->Get(0)); });
  EXPECT_NE(said.find("with " + std::to_string(plan.workspaceBytes) +
                      " bytes of workspace and takes " + std::to_string(plan.workspaceBytes - 64) +
                      "; compile the model again"),
            std::string::npos)
      << said;
}

// The same plan on one thread and on three; by all code that the processor has the instructions
// for: strips of one thread, shared ones of a few groups of tiles and of more, in bundles.
TEST_F(WinogradConvolution, HasEqualBitsOnAnyTeam) {
  const Volumes cases[] = {{{2, 32, 40, 40}, {48, 32, 3, 3}, 1},
                           {{1, 96, 9, 37}, {144, 96, 3, 3}, 1},
                           {{1, 128, 1, 619}, {336, 128, 3, 3}, 1}};
  int found = 0;
  for (unsigned vectorBits : {256, 512})
    for (const Volumes &volumes : cases)
      for (KernelOp op : {KernelOp::Conv, KernelOp::ConvGradData, KernelOp::ConvGradFilter})
        if (const char *implementation = WinogradConv::nameFor(vectorBits)) {
          SCOPED_TRACE(implementation + std::to_string(volumes.w[0]));
          found += expectEqualBits(implementation, op, volumes);
        }
  EXPECT_EQ(found, planner->target().vectorBits >= 512 ? 18 : 9);
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

TEST_F(WinogradConvolution, PadsDepthUnevenly) {
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

TEST_F(WinogradConvolution, AddsBiasAndRelu) {
  Volumes volumes{{2, 16, 5, 9, 8}, {16, 16, 3, 3, 3}, 1};
  Tensor x = Tensor::random(volumes.x, 1), w = Tensor::random(volumes.w, 2);
  Tensor bias = Tensor::random({16}, 3);
  Tensor y = test::addBias(test::conv(x, w, {1, 1, 1, 1}), bias, true);
  KernelRequest request = requestOf(KernelOp::Conv, volumes, {x, w, bias, y});
  request.bias = request.relu = true;
  expectWinograd(request, {x, w, bias}, y);
}

TEST_F(WinogradConvolution, IsOfferedForWholeBlocksOfChannelsInFastMathAlone) {
  auto offersWinograd = [&](const KernelRequest &request) {
    return std::ranges::any_of(planner->candidates(request).candidates, isWinograd);
  };
  KernelRequest request = forwardOf({1, 32, 4, 8, 8}, {32, 32, 3, 3, 3}, {1, 32, 4, 8, 8});
  EXPECT_TRUE(offersWinograd(request));
  request.math = Math::Strict;
  EXPECT_FALSE(offersWinograd(request));
  int64_t part = planner->target().vectorBits / 32 * 3 / 2;
  EXPECT_FALSE(
      offersWinograd(forwardOf({1, part, 4, 8, 8}, {32, part, 3, 3, 3}, {1, 32, 4, 8, 8})));
  request = forwardOf({1, 32, 4, 8, 8}, {32, 32, 3, 3, 3}, {1, 32, 2, 8, 8});
  request.strides[0] = 2;
  EXPECT_FALSE(offersWinograd(request));
  request = forwardOf({1, 32, 6, 8, 8}, {32, 32, 3, 3, 3}, {1, 32, 4, 8, 8});
  request.dilations[0] = 2;
  EXPECT_FALSE(offersWinograd(request));
}
