// Convolutions and their gradients by AMX's tiles, beside plain loops; random shapes are in
// RandomConvTest.cpp.

#include "test/unit/cpu/KernelFixture.h"

#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/CpuMemory.h"
#include "runtime/cpu/kernels/OwnKernel.h"
#include "runtime/cpu/kernels/Tiles.h"

#include <bit>

using namespace dlc::rt;
using test::Tensor;

namespace {

struct Case {
  const char *name;
  std::vector<int64_t> x, w;
  test::ConvShape shape;
};

// Each reaches another way of cutting, packing or writing; few have whole steps of 32 pixels.
const Case cases[] = {
    {"pixels in shares", {2, 16, 45, 47}, {16, 16, 3, 3}, {1, 1, 1, 1}},
    {"elements of the window in parts", {1, 48, 9, 11}, {32, 48, 3, 3}, {1, 1, 1, 1}},
    {"channels of dy in parts", {2, 16, 6, 7}, {112, 16, 1, 1}, {1, 0, 1, 1}},
    {"sums kept from pixels to pixels", {1, 192, 31, 33}, {160, 192, 3, 3}, {1, 1, 1, 1}},
    {"one block by one", {1, 16, 4, 4}, {16, 16, 1, 1}, {1, 0, 1, 1}},
    {"tiles in several shares", {2, 48, 45, 47}, {32, 48, 1, 1}, {1, 0, 1, 1}},
    {"lines in several shares", {2, 3, 45, 47}, {32, 3, 7, 7}, {1, 3, 1, 1}},
    {"few steps at once", {1, 16, 23, 23}, {2048, 16, 1, 1}, {1, 0, 1, 1}},
    {"an odd block's sums kept", {1, 32, 23, 23}, {48, 32, 3, 3}, {2, 1, 1, 1}},
    {"x packed across steps", {1, 64, 11, 13}, {80, 64, 3, 3}, {2, 1, 1, 1}},
    {"lines packed across steps", {1, 3, 11, 13}, {80, 3, 3, 3}, {1, 1, 1, 1}},
    {"x packed for a window", {2, 64, 19, 21}, {80, 64, 3, 3}, {1, 1, 1, 1}},
    {"for one that is cut off", {2, 48, 20, 21}, {32, 48, 3, 2}, {1, 0, 1, 1}},
    {"for one at even distances", {1, 32, 18, 21}, {16, 32, 7, 1}, {1, 0, 1, 1}},
    {"for one with holes", {1, 32, 40, 31}, {16, 32, 3, 3}, {1, 2, 2, 1}},
    {"for slices of one", {2, 32, 7, 18, 19}, {32, 32, 3, 3, 3}, {1, 1, 1, 1}},
    {"for one in wide padding", {1, 32, 18, 21}, {16, 32, 3, 3}, {1, 3, 1, 1}},
    {"for one along signals", {3, 32, 70}, {16, 32, 5}, {1, 2, 1, 1}},
    {"rows in place", {2, 64, 8, 8}, {32, 64, 1, 1}, {1, 0, 1, 1}},
    {"rows too long to be in place", {1, 576, 4, 8}, {32, 576, 1, 1}, {1, 0, 1, 1}},
    {"rows in place of a step's phase", {2, 32, 16, 16}, {64, 32, 1, 1}, {2, 0, 1, 1}},
    {"long rows", {1, 464, 9, 9}, {16, 464, 3, 3}, {1, 1, 1, 1}},
    {"holes between steps of three", {1, 16, 19, 20}, {32, 16, 3, 3}, {3, 2, 2, 1}},
    {"steps and holes", {2, 32, 17, 19}, {48, 32, 3, 3}, {2, 2, 2, 1}},
    {"steps over pixels", {2, 32, 14, 13}, {64, 32, 1, 1}, {2, 0, 1, 1}},
    {"steps of three", {1, 48, 16, 17}, {16, 48, 5, 5}, {3, 1, 1, 1}},
    {"wide padding", {1, 16, 5, 6}, {16, 16, 3, 3}, {2, 3, 1, 1}},
    {"lines of three channels", {2, 3, 40, 41}, {16, 3, 7, 7}, {2, 3, 1, 1}},
    {"lines of one channel", {2, 1, 20, 21}, {32, 1, 3, 3}, {1, 1, 1, 1}},
    {"lines of several tiles", {1, 24, 9, 8}, {32, 24, 3, 3}, {1, 1, 1, 1}},
    {"lines wider than the image", {3, 5, 3, 2}, {16, 5, 5, 5}, {1, 2, 1, 1}},
    {"volumes", {1, 16, 5, 6, 7}, {32, 16, 3, 3, 3}, {1, 1, 1, 1}},
    {"steps in volumes", {2, 16, 6, 7, 8}, {16, 16, 2, 2, 2}, {2, 0, 1, 1}},
    {"lines of volumes", {2, 2, 5, 6, 7}, {16, 2, 3, 3, 3}, {2, 1, 1, 1}},
    {"signals", {2, 16, 70}, {16, 16, 5}, {1, 2, 1, 1}},
    {"steps in signals", {2, 32, 71}, {16, 32, 3}, {2, 1, 1, 1}},
    {"lines of signals", {2, 3, 71}, {16, 3, 5}, {2, 2, 1, 1}},
};

Tensor roundedRandom(const std::vector<int64_t> &shape, unsigned seed) {
  Tensor tensor = Tensor::random(shape, seed);
  for (float &value : tensor.values)
    value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xFFFF0000U);
  return tensor;
}

/// An operation of a case, its operands, and what the last of them is to be.
struct Operation {
  KernelRequest request;
  std::vector<Tensor> inputs;
  Tensor expected;
};

Operation makeOperation(KernelOp op, const test::ConvShape &shape, std::vector<Tensor> inputs,
                        Tensor expected) {
  Operation made{{}, std::move(inputs), std::move(expected)};
  KernelRequest &request = made.request;
  request.op = op;
  for (const Tensor &input : made.inputs)
    request.operands.push_back({DType::BF16, input.shape, {}});
  request.operands.push_back(
      {op == KernelOp::ConvGradFilter ? DType::F32 : DType::BF16, made.expected.shape, {}});
  size_t rank = made.expected.shape.size() - 2;
  request.strides.assign(rank, shape.stride);
  request.paddingLow.assign(rank, shape.padding);
  request.paddingHigh = request.paddingLow;
  request.dilations.assign(rank, shape.dilation);
  request.threads = test::teamThreads;
  return made;
}

std::vector<Operation> operationsOf(const Case &each) {
  Tensor x = roundedRandom(each.x, 1), w = roundedRandom(each.w, 2);
  Tensor y = test::conv(x, w, each.shape), dy = roundedRandom(y.shape, 3);
  std::vector<Operation> operations;
  operations.push_back(makeOperation(KernelOp::Conv, each.shape, {x, w}, y));
  operations.push_back(makeOperation(KernelOp::ConvGradData, each.shape, {dy, w},
                                     test::convGradData(dy, w, each.x, each.shape)));
  operations.push_back(makeOperation(KernelOp::ConvGradFilter, each.shape, {x, dy},
                                     test::convGradFilter(x, dy, each.w, each.shape)));
  return operations;
}

bool isOfTiles(const KernelCandidate &candidate) { return candidate.implementation == tiles::name; }

} // namespace

class TileKernels : public test::KernelFixture {
protected:
  void SetUp() override {
    if (planner->target().name != "cpu:amx")
      GTEST_SKIP() << "this processor has no tiles";
  }

  std::vector<KernelCandidate> offered(const KernelRequest &request) {
    std::vector<KernelCandidate> all = planner->candidates(request).candidates;
    std::erase_if(all, [](const KernelCandidate &candidate) { return !isOfTiles(candidate); });
    return all;
  }

  /// All that are offered; returns how many.
  size_t expectAgreement(const Operation &operation) {
    std::vector<KernelCandidate> all = offered(operation.request);
    for (const KernelCandidate &candidate : all) {
      SCOPED_TRACE(candidate.layouts.front().toString() + " " +
                   candidate.layouts.back().toString());
      std::vector<Tensor> tensors = operation.inputs;
      tensors.emplace_back(operation.expected.shape);
      runCandidate(operation.request, candidate, tensors, operation.inputs.size());
      // Gradients of filters are not rounded, what else is differs by half a bit of eight.
      bool isRounded = operation.request.operands.back().dtype == DType::BF16;
      EXPECT_LT(test::relativeError(tensors.back(), operation.expected), isRounded ? 2e-3 : 1e-6);
    }
    return all.size();
  }
};

TEST_F(TileKernels, AgreeWithPlainLoopsInAllLayouts) {
  for (const Case &each : cases)
    for (const Operation &operation : operationsOf(each)) {
      SCOPED_TRACE(std::string(each.name) + ", operation " +
                   std::to_string(static_cast<int>(operation.request.op)));
      bool isFilter = operation.request.op == KernelOp::ConvGradFilter;
      bool isInBlocks = each.x[1] % 16 == 0;
      bool isPoint =
          std::all_of(each.w.begin() + 2, each.w.end(), [](int64_t n) { return n == 1; });
      size_t expected = isFilter ? (isInBlocks ? (isPoint ? 4 : 2) : 1) : isInBlocks;
      EXPECT_EQ(expectAgreement(operation), expected);
    }
}

TEST_F(TileKernels, AddBiasAndRelu) {
  test::ConvShape shape{2, 1, 1, 1};
  Tensor x = roundedRandom({2, 32, 9, 8}, 1), w = roundedRandom({48, 32, 3, 3}, 2);
  Tensor y = test::conv(x, w, shape), dy = roundedRandom(y.shape, 3);
  Tensor dx = test::convGradData(dy, w, x.shape, shape);
  for (bool relu : {false, true})
    for (bool isData : {false, true}) {
      Tensor plain = isData ? dx : y, bias = Tensor::random({plain.shape[1]}, 4);
      for (float &value : bias.values)
        value *= 8;
      Operation operation =
          makeOperation(isData ? KernelOp::ConvGradData : KernelOp::Conv, shape,
                        {isData ? dy : x, w, bias}, test::addBias(plain, bias, relu));
      operation.request.operands[2].dtype = DType::F32;
      operation.request.bias = true;
      operation.request.relu = relu;
      EXPECT_EQ(expectAgreement(operation), 1);
    }
}

/// `outer` shape of zeros with `inner` in it, in two dimensions from `low` on and `step` apart.
static Tensor placed(const Tensor &inner, const std::vector<int64_t> &outer,
                     const std::vector<int64_t> &low, const std::vector<int64_t> &step) {
  Tensor result(outer);
  int64_t rows = inner.shape[2], columns = inner.shape[3];
  for (size_t i = 0; i < inner.values.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    int64_t row = low[0] + at / columns % rows * step[0], column = low[1] + at % columns * step[1];
    int64_t image = at / columns / rows;
    result.values[static_cast<size_t>((image * outer[2] + row) * outer[3] + column)] =
        inner.values[i];
  }
  return result;
}

/// The elements that `placed` has put there.
static Tensor taken(const Tensor &outer, const std::vector<int64_t> &inner,
                    const std::vector<int64_t> &low, const std::vector<int64_t> &step) {
  Tensor result(inner);
  int64_t rows = inner[2], columns = inner[3];
  for (size_t i = 0; i < result.values.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    int64_t row = low[0] + at / columns % rows * step[0], column = low[1] + at % columns * step[1];
    result.values[i] = outer.values[static_cast<size_t>(
        (at / columns / rows * outer.shape[2] + row) * outer.shape[3] + column)];
  }
  return result;
}

// Windows, steps and paddings that differ from rows to columns and from one end to the other.
TEST_F(TileKernels, AgreeWhereDimensionsDiffer) {
  const std::vector<int64_t> one{1, 1}, none{0, 0}, low{1, 0}, high{2, 3};
  for (int64_t step : {1, 2})
    for (int64_t channels : {3, 32}) {
      const std::vector<int64_t> strides{step, 1};
      Tensor x = roundedRandom({2, channels, 11, 14}, 1);
      Tensor w = roundedRandom({16, channels, 3, 2}, 2);
      Tensor padded = placed(x, {2, channels, 14, 17}, low, one);
      test::ConvShape dense{1, 0, 1, 1};
      Tensor all = test::conv(padded, w, dense);
      Tensor y = taken(all, {2, 16, 12 / step, 16}, none, strides);
      Tensor dy = roundedRandom(y.shape, 3), spread = placed(dy, all.shape, none, strides);
      Tensor dx = taken(test::convGradData(spread, w, padded.shape, dense), x.shape, low, one);
      std::vector<Operation> operations;
      operations.push_back(makeOperation(KernelOp::Conv, dense, {x, w}, y));
      operations.push_back(makeOperation(KernelOp::ConvGradData, dense, {dy, w}, dx));
      operations.push_back(makeOperation(KernelOp::ConvGradFilter, dense, {x, dy},
                                         test::convGradFilter(padded, spread, w.shape, dense)));
      for (Operation &operation : operations) {
        operation.request.strides = strides;
        operation.request.paddingLow = low;
        operation.request.paddingHigh = high;
        bool isFilter = operation.request.op == KernelOp::ConvGradFilter;
        EXPECT_EQ(expectAgreement(operation), channels == 32 ? (isFilter ? 2 : 1) : isFilter);
      }
    }
}

// The same plan, for three threads or eight, on one thread, two and three; nothing is written
// behind results and workspaces.
TEST_F(TileKernels, HaveEqualBitsOnAnyTeam) {
  constexpr size_t guard = 64;
  size_t compared = 0;
  for (const Case &each : cases)
    for (Operation &operation : operationsOf(each)) {
      SCOPED_TRACE(each.name);
      KernelRequest &request = operation.request;
      request.threads = compared % 2 == 0 ? 3 : 8;
      for (const KernelCandidate &candidate : offered(request)) {
        std::vector<std::vector<std::byte>> memory;
        for (size_t i = 0; i < request.operands.size(); ++i) {
          OperandType &operand = request.operands[i];
          operand.layout = candidate.layouts[i];
          PhysicalType type(operand.dtype, operand.shape, *operand.layout);
          memory.emplace_back(type.bytes() + guard);
          if (i < operation.inputs.size())
            writeTensor(type, operation.inputs[i].values,
                        std::span(memory.back()).first(type.bytes()));
        }
        auto kernel = makeOwnKernel(candidate.implementation, request);
        ASSERT_TRUE(kernel);
        size_t bytes = memory.back().size(), workspaceBytes = kernel->workspaceBytes();
        // The result may begin at no line of the cache, the workspace hold what looks like places.
        auto resultOn = [&](unsigned team, size_t offset, int32_t before) {
          setTeamSize(team);
          CpuMemory workspace(workspaceBytes + guard), result(offset + bytes);
          std::vector<int32_t> held(workspaceBytes / sizeof(before), before);
          std::ranges::copy(std::as_bytes(std::span(held)), workspace.bytes().begin());
          std::ranges::fill(workspace.bytes().last(guard), std::byte{0x55});
          std::ranges::fill(result.bytes(), std::byte{0x55});
          std::vector<void *> buffers;
          for (std::vector<std::byte> &operand : memory)
            buffers.push_back(operand.data());
          buffers.back() = result.bytes().data() + offset;
          buffers.push_back(workspace.bytes().data());
          kernel->run(buffers);
          setTeamSize(test::teamThreads);
          auto isUntouched = [](std::byte value) { return value == std::byte{0x55}; };
          EXPECT_TRUE(std::ranges::all_of(workspace.bytes().last(guard), isUntouched));
          EXPECT_TRUE(std::ranges::all_of(result.bytes().last(guard), isUntouched));
          std::span<std::byte> written = result.bytes().subspan(offset, bytes - guard);
          return std::vector<std::byte>(written.begin(), written.end());
        };
        std::vector<std::byte> one = resultOn(1, 0, -1);
        EXPECT_EQ(one, resultOn(2, sizeof(float), -1));
        EXPECT_EQ(one, resultOn(3, 0, 1));
        ++compared;
        for (OperandType &operand : request.operands)
          operand.layout.reset();
      }
    }
  EXPECT_GT(compared, 3 * std::size(cases));
}

// What a damaged artifact may ask for: places beyond 32 bits, more to plan than there is memory.
TEST_F(TileKernels, ComputeNoWindowsOfUnboundedReach) {
  const Case whole{"", {2, 32, 6, 6}, {32, 32, 3, 3}, {1, 1, 1, 1}};
  for (const Operation &operation : operationsOf(whole)) {
    KernelRequest good = operation.request;
    std::vector<Layout> layouts = offered(good).front().layouts;
    for (size_t i = 0; i < layouts.size(); ++i)
      good.operands[i].layout = layouts[i];
    EXPECT_TRUE(makeOwnKernel(tiles::name, good));
    auto expectNone = [&](const auto &change) {
      KernelRequest changed = good;
      change(changed);
      EXPECT_FALSE(makeOwnKernel(tiles::name, changed));
    };
    expectNone([](KernelRequest &request) { request.paddingLow[0] += int64_t{1} << 32; });
    expectNone([](KernelRequest &request) { request.paddingHigh[1] += int64_t{1} << 32; });
    expectNone([](KernelRequest &request) { request.dilations[0] += int64_t{1} << 32; });
    expectNone([](KernelRequest &request) { request.strides[1] += int64_t{1} << 20; });
    expectNone([](KernelRequest &request) { request.threads = 1 << 20; });
    expectNone([](KernelRequest &request) {
      for (size_t i = 0; i < 3; ++i)
        if (i != *weightOperand(request.op))
          request.operands[i].shape = {1 << 20, 32, 1 << 10, 1 << 10};
    });
    expectNone([&](KernelRequest &request) {
      request.operands[*weightOperand(request.op)].shape[2] = int64_t{1} << 32;
    });
    expectNone([](KernelRequest &request) { request.operands[0].shape[2] = int64_t{1} << 32; });
  }
}

TEST_F(TileKernels, AreOfferedForWholeBlocksInBF16) {
  const Case whole{"", {2, 32, 6, 6}, {32, 32, 3, 3}, {1, 1, 1, 1}};
  for (Operation &operation : operationsOf(whole)) {
    KernelRequest &request = operation.request;
    EXPECT_FALSE(offered(request).empty());
    request.math = Math::Strict;
    EXPECT_FALSE(offered(request).empty()) << "their products are exact";
    for (OperandType &operand : request.operands)
      operand.dtype = DType::F32;
    EXPECT_TRUE(offered(request).empty());
  }
  for (const Operation &operation : operationsOf({"", {2, 32, 6, 6}, {24, 32, 3, 3}, {1, 1, 1, 1}}))
    EXPECT_TRUE(offered(operation.request).empty()) << "channels of dy";
  for (const Operation &operation : operationsOf({"", {2, 3, 6, 6}, {32, 3, 3, 3}, {1, 2, 2, 1}}))
    EXPECT_TRUE(offered(operation.request).empty()) << "lines with holes";
  for (Operation &operation : operationsOf({"", {2, 64, 6, 6}, {32, 32, 3, 3}, {1, 1, 1, 2}})) {
    operation.request.groups = 2;
    EXPECT_TRUE(offered(operation.request).empty());
  }
}
