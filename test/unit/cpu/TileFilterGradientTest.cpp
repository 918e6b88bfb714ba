// Filter gradients by AMX's tiles, beside plain loops; random shapes are in RandomConvTest.cpp.

#include "test/unit/cpu/KernelFixture.h"

#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/CpuMemory.h"
#include "runtime/cpu/kernels/TileFilterGradient.h"

#include <bit>

using namespace dlc::rt;
using test::Tensor;

namespace {

struct Case {
  const char *name;
  std::vector<int64_t> x, w;
  test::ConvShape shape;
};

// A pixel more or less than whole steps of 32, and images whose rows end within one.
const Case cases[] = {
    {"pixels in shares", {2, 16, 45, 47}, {16, 16, 3, 3}, {1, 1, 1, 1}},
    {"elements of the window in parts", {1, 48, 9, 11}, {32, 48, 3, 3}, {1, 1, 1, 1}},
    {"channels of dy in parts", {2, 16, 6, 7}, {112, 16, 1, 1}, {1, 0, 1, 1}},
    {"sums kept from pixels to pixels", {1, 192, 31, 33}, {160, 192, 3, 3}, {1, 1, 1, 1}},
    {"one block by one", {1, 16, 4, 4}, {16, 16, 1, 1}, {1, 0, 1, 1}},
    {"steps and holes", {2, 32, 17, 19}, {48, 32, 3, 3}, {2, 2, 2, 1}},
    {"lines of three channels", {2, 3, 40, 41}, {16, 3, 7, 7}, {2, 3, 1, 1}},
    {"lines of one channel", {2, 1, 20, 21}, {32, 1, 3, 3}, {1, 1, 1, 1}},
    {"lines of several tiles", {1, 24, 9, 8}, {32, 24, 3, 3}, {1, 1, 1, 1}},
    {"lines wider than the image", {3, 5, 3, 2}, {16, 5, 5, 5}, {1, 2, 1, 1}},
    {"volumes", {1, 16, 5, 6, 7}, {32, 16, 3, 3, 3}, {1, 1, 1, 1}},
    {"lines of volumes", {2, 2, 5, 6, 7}, {16, 2, 3, 3, 3}, {2, 1, 1, 1}},
    {"signals", {2, 16, 70}, {16, 16, 5}, {1, 2, 1, 1}},
};

Tensor roundedRandom(const std::vector<int64_t> &shape, unsigned seed) {
  Tensor tensor = Tensor::random(shape, seed);
  for (float &value : tensor.values)
    value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xFFFF0000U);
  return tensor;
}

KernelRequest requestOf(const Case &each, const std::vector<int64_t> &dy) {
  KernelRequest request;
  request.op = KernelOp::ConvGradFilter;
  request.operands = {{DType::BF16, each.x, {}}, {DType::BF16, dy, {}}, {DType::F32, each.w, {}}};
  size_t rank = each.x.size() - 2;
  request.strides.assign(rank, each.shape.stride);
  request.paddingLow.assign(rank, each.shape.padding);
  request.paddingHigh = request.paddingLow;
  request.dilations.assign(rank, each.shape.dilation);
  request.threads = test::teamThreads;
  return request;
}

bool isOfTiles(const KernelCandidate &candidate) {
  return candidate.implementation == TileFilterGradient::name();
}

} // namespace

class TileFilterGradients : public test::KernelFixture {
protected:
  void SetUp() override {
    if (planner->target().name != "cpu:amx")
      GTEST_SKIP() << "this processor has no tiles";
  }

  bool isOffered(const KernelRequest &request) {
    return std::ranges::any_of(planner->candidates(request).candidates, isOfTiles);
  }
};

TEST_F(TileFilterGradients, AgreeWithPlainLoopsInAllLayouts) {
  for (const Case &each : cases) {
    Tensor x = roundedRandom(each.x, 1), w(each.w);
    Tensor dy = roundedRandom(test::conv(x, w, each.shape).shape, 2);
    Tensor expected = test::convGradFilter(x, dy, each.w, each.shape);
    KernelRequest request = requestOf(each, dy.shape);
    size_t found = 0;
    for (const KernelCandidate &candidate : planner->candidates(request).candidates)
      if (isOfTiles(candidate)) {
        SCOPED_TRACE(std::string(each.name) + ": " + candidate.layouts[0].toString() + " " +
                     candidate.layouts[2].toString());
        ++found;
        std::vector<Tensor> tensors{x, dy, Tensor(each.w)};
        runCandidate(request, candidate, tensors, 2);
        EXPECT_LT(test::relativeError(tensors[2], expected), 1e-6);
      }
    bool isPoint = std::all_of(each.w.begin() + 2, each.w.end(), [](int64_t n) { return n == 1; });
    EXPECT_EQ(found, each.x[1] % 16 != 0 ? 1 : isPoint ? 4 : 2) << each.name;
  }
}

// The same plan on one thread, two and three.
TEST_F(TileFilterGradients, HaveEqualBitsOnAnyTeam) {
  for (const Case &each : cases) {
    Tensor x = roundedRandom(each.x, 1), w(each.w);
    Tensor dy = roundedRandom(test::conv(x, w, each.shape).shape, 2);
    KernelRequest request = requestOf(each, dy.shape);
    request.threads = 3;
    auto layouts =
        TileFilterGradient::layouts(request, LayoutFamily::ChannelsLast, /*inRows=*/false);
    ASSERT_TRUE(layouts) << each.name;
    for (size_t i = 0; i < layouts->size(); ++i)
      request.operands[i].layout = (*layouts)[i];
    auto kernel = TileFilterGradient::of(request);
    ASSERT_TRUE(kernel);
    auto memoryOf = [&](size_t i, const Tensor &tensor) {
      PhysicalType type(request.operands[i].dtype, tensor.shape, *request.operands[i].layout);
      std::vector<std::byte> memory(type.bytes());
      writeTensor(type, tensor.values, memory);
      return memory;
    };
    std::vector<std::byte> ofX = memoryOf(0, x), ofDy = memoryOf(1, dy), ofW = memoryOf(2, w);
    auto resultOn = [&](unsigned team) {
      setTeamSize(team);
      CpuMemory workspace(kernel->workspaceBytes());
      std::ranges::fill(workspace.bytes(), std::byte{0x55});
      std::ranges::fill(ofW, std::byte{0x55});
      kernel->run(
          std::vector<void *>{ofX.data(), ofDy.data(), ofW.data(), workspace.bytes().data()});
      setTeamSize(test::teamThreads);
      return ofW;
    };
    std::vector<std::byte> one = resultOn(1);
    EXPECT_EQ(one, resultOn(2)) << each.name;
    EXPECT_EQ(one, resultOn(3)) << each.name;
  }
}

TEST_F(TileFilterGradients, AreOfferedForWholeBlocksInBF16) {
  const Case whole{"", {2, 32, 6, 6}, {32, 32, 3, 3}, {1, 1, 1, 1}};
  const std::vector<int64_t> dy{2, 32, 6, 6};
  EXPECT_TRUE(isOffered(requestOf(whole, dy)));
  KernelRequest request = requestOf(whole, dy);
  request.math = Math::Strict;
  EXPECT_TRUE(isOffered(request)) << "their products are exact";
  request.operands[0].dtype = request.operands[1].dtype = DType::F32;
  EXPECT_FALSE(isOffered(request));
  EXPECT_FALSE(
      isOffered(requestOf({"", {2, 32, 6, 6}, {24, 32, 3, 3}, {1, 1, 1, 1}}, {2, 24, 6, 6})))
      << "channels of dy";
  EXPECT_FALSE(isOffered(requestOf({"", {2, 3, 6, 6}, {32, 3, 3, 3}, {1, 2, 2, 1}}, {2, 32, 6, 6})))
      << "lines with holes";
  request = requestOf({"", {2, 64, 6, 6}, {32, 32, 3, 3}, {1, 1, 1, 2}}, dy);
  request.groups = 2;
  EXPECT_FALSE(isOffered(request));
}
