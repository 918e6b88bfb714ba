// Each operation is a short list of rows: name, factor on the cost, layout of each operand.

#include "test/backend/TestPlanner.h"
#include "runtime/artifact/LayoutIo.h"

#include <algorithm>
#include <limits>

using namespace dlc;
using rt::KernelOp;
using rt::Layout;
using rt::LayoutFamily;

static constexpr uint16_t lanes = 16;

/// Weights [O, I, K...] with both channels blocked; `inner` is the innermost of the two.
static Layout blockedWeight(const std::vector<int64_t> &shape, uint8_t inner) {
  Layout layout = Layout::rowMajor(shape.size());
  for (uint8_t dim : {static_cast<uint8_t>(1 - inner), inner})
    if (shape[dim] >= lanes)
      layout.blocks.push_back({dim, lanes});
  return layout;
}

static std::vector<Layout> blockedLayouts(const rt::KernelRequest &request) {
  std::optional<size_t> weight = rt::weightOperand(request.op);
  std::vector<Layout> layouts;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    const std::vector<int64_t> &shape = request.operands[i].shape;
    if (shape.size() < 3)
      layouts.push_back(Layout::rowMajor(shape.size()));
    else if (i == weight)
      layouts.push_back(blockedWeight(shape, request.op == KernelOp::ConvGradData ? 1 : 0));
    else
      layouts.push_back(
          rt::layoutIn(!weight || shape[1] >= lanes ? LayoutFamily::Blocked : LayoutFamily::Plain,
                       shape.size(), lanes));
  }
  return layouts;
}

static std::vector<Layout> uniformLayouts(const rt::KernelRequest &request, LayoutFamily family) {
  std::vector<Layout> layouts;
  layouts.reserve(request.operands.size());
  for (const rt::OperandType &operand : request.operands)
    layouts.push_back(rt::layoutIn(family, operand.shape.size(), lanes));
  return layouts;
}

static uint64_t elementsOf(const std::vector<int64_t> &shape, size_t from = 0) {
  uint64_t elements = 1;
  for (size_t dim = from; dim < shape.size(); ++dim)
    elements *= static_cast<uint64_t>(shape[dim]);
  return elements;
}

static uint64_t flopsOf(const rt::KernelRequest &request) {
  const std::vector<rt::OperandType> &operands = request.operands;
  switch (request.op) {
  case KernelOp::Conv:
    return 2 * elementsOf(operands.back().shape) * elementsOf(operands[1].shape, 1);
  case KernelOp::ConvGradData:
    return 2 * elementsOf(operands[0].shape) * elementsOf(operands[1].shape, 1);
  case KernelOp::ConvGradFilter:
    return 2 * elementsOf(operands[1].shape) * elementsOf(operands[2].shape, 1);
  case KernelOp::Matmul:
    return 2 * elementsOf(operands.back().shape) *
           static_cast<uint64_t>(operands[0].shape[request.transposeA ? 0 : 1]);
  default:
    return 0;
  }
}

static bool fits(const rt::KernelRequest &request, const std::vector<Layout> &layouts) {
  for (size_t i = 0; i < layouts.size(); ++i)
    if (request.operands[i].layout && *request.operands[i].layout != layouts[i])
      return false;
  return true;
}

/// Those of a CPU, in round numbers.
static constexpr rt::LoopLimits rulesLoops{
    .itemElements = 8192,
    .leastItemElements = 512,
    .keptItemElements = 1024,
    .reducedItemElements = 65536,
    .reducedColumns = 65536,
    .combinedColumns = 65536,
    .sharedRun = 0,
    .vectorLanes = lanes,
    .mostPartials = 128,
    .chunkBytes = 128 * 1024,
    .mostChunks = 512,
    .manyKept = 4096,
    .rangeMultiple = 1024,
    .sums = rt::DType::F64,
    .epilogues = false,
    .products = {.mostRows = 32, .dotColumns = 48, .sumColumns = 768, .mostChunks = 128},
    .bytesPerOperation = 0.25,
    .bytesPerFunction = 5,
    .leastSavedBytes = 64 * 1024,
};

/// Those of no machine: none is as for test:rules.
static constexpr rt::LoopLimits smallLoops{
    .itemElements = 256,
    .leastItemElements = 32,
    .keptItemElements = 32,
    .reducedItemElements = 2048,
    .reducedColumns = 64,
    .combinedColumns = 16,
    .sharedRun = 8,
    .vectorLanes = 4,
    .mostPartials = 4,
    .chunkBytes = 4096,
    .mostChunks = 16,
    .manyKept = 128,
    .rangeMultiple = 64,
    .sums = rt::DType::F32,
    .epilogues = true,
    .products = {.mostRows = 8, .dotColumns = 12, .sumColumns = 192, .mostChunks = 2},
    .bytesPerOperation = 1,
    .bytesPerFunction = 2,
    .leastSavedBytes = 4096,
};

TestPlanner::TestPlanner(const std::string &name)
    : description{
          .name = name,
          .features = {},
          .library = "rules",
          .vectorBits = 512,
          .dtypes = {rt::DType::F32, rt::DType::BF16},
          .loops = name == small ? smallLoops : rulesLoops,
          .emitter = name == small ? "none" : "cpu",
          .table = "",
          .cacheBytes = 1 << 20,
          .families = {LayoutFamily::Plain, LayoutFamily::ChannelsLast, LayoutFamily::Blocked},
          .channelBlock = lanes,
          .memoryBytes = name == small ? uint64_t{1} << 30 : 0,
          .besideMemory = "nothing"} {}

double TestPlanner::generatedCost(uint64_t bytes, uint64_t flops) const noexcept {
  return 1000 + std::max(static_cast<double>(bytes) / 32, static_cast<double>(flops) / 256);
}

/// Of products alone: cheaper than the library's where the second operand does not fit into the
/// cache.
double TestPlanner::generatedCost(const rt::KernelRequest &request) const noexcept {
  if (request.op != KernelOp::Matmul)
    return std::numeric_limits<double>::infinity();
  uint64_t bytes = 4 * elementsOf(request.operands[1].shape);
  return generatedCost(bytes, flopsOf(request)) * (bytes > description.cacheBytes ? 0.5 : 2);
}

rt::CandidateList TestPlanner::candidates(const rt::KernelRequest &request) noexcept {
  rt::CandidateList list;
  auto offer = [&](const char *name, double factor, const std::vector<Layout> &layouts) {
    if (!fits(request, layouts))
      return false;
    rt::KernelCandidate candidate{layouts, name};
    candidate.flops = flopsOf(request);
    for (size_t i = 0; i < layouts.size(); ++i)
      candidate.bytes +=
          physicalBytes(request.operands[i].dtype, request.operands[i].shape, layouts[i]);
    candidate.nanoseconds = factor * generatedCost(candidate.bytes, candidate.flops);
    if (request.op == KernelOp::ConvGradData && request.relu)
      candidate.nanoseconds *= 10;
    if (request.groups > 1 && request.operands[*rt::weightOperand(request.op)].shape[1] < 4)
      candidate.nanoseconds *= 100;
    list.candidates.push_back(candidate);
    return true;
  };
  rt::DType dtype = request.operands[0].dtype;
  if (dtype != rt::DType::F32 && dtype != rt::DType::BF16 && dtype != rt::DType::F16)
    return {{}, "the test planner has rules for f32, bf16 and f16 alone"};
  auto isF32 = [](const rt::OperandType &operand) { return operand.dtype == rt::DType::F32; };
  if (dtype == rt::DType::F16 && std::ranges::any_of(request.operands, isF32))
    return {{}, "kernels in f16 have nothing in f32"};
  if (dtype == rt::DType::F16 && request.op == KernelOp::ConvGradData && request.bias)
    return {{}, "no data gradient in f16 takes a bias"};
  if (request.op == KernelOp::Conv && request.relu && request.operands[1].shape.back() == 9)
    return {{}, "no convolution of 9 x 9 takes a ReLU"};
  if (request.op == KernelOp::Conv && request.bias && request.operands[1].shape.back() == 11)
    return {{}, "no convolution of 11 x 11 takes a bias"};
  if (request.op == KernelOp::Reorder) {
    if (request.operands[0].layout && request.operands[1].layout)
      offer("test_reorder", 1, {*request.operands[0].layout, *request.operands[1].layout});
  } else if (request.op == KernelOp::Matmul) {
    bool isWide = request.operands.back().shape.back() == 700;
    if (isWide && offer("test_workspace", 0.25, uniformLayouts(request, LayoutFamily::Plain)))
      list.candidates.back().workspaceBytes = 1 << 20;
    offer("test_plain", 1, uniformLayouts(request, LayoutFamily::Plain));
  } else {
    bool isWide = request.op == KernelOp::Conv && request.operands[1].shape.back() == 5;
    if (isWide && offer("test_workspace", 0.5, blockedLayouts(request)))
      list.candidates.back().workspaceBytes = 1 << 20;
    if (request.op == KernelOp::Conv && request.operands[1].shape.back() == 7) {
      std::vector<Layout> layouts = blockedLayouts(request);
      layouts[1] = blockedWeight(request.operands[1].shape, 1); // this kernel's alone
      if (offer("test_workspace", 0.5, layouts))
        list.candidates.back().workspaceBytes = 1 << 20;
    }
    offer("test_blocked", 1, blockedLayouts(request));
    offer("test_channels_last", 1.5, uniformLayouts(request, LayoutFamily::ChannelsLast));
    if (request.op != KernelOp::MaxPool && request.op != KernelOp::MaxPoolGrad)
      offer("test_plain", 2, uniformLayouts(request, LayoutFamily::Plain));
  }
  if (list.candidates.empty())
    list.reason = "no rule of the test planner fits these layouts";
  return list;
}

std::vector<uint8_t> TestPlanner::finalise(const rt::KernelRequest &request,
                                           const rt::KernelCandidate &choice,
                                           std::string &) noexcept {
  std::string text = choice.implementation;
  for (size_t i = 0; i < choice.layouts.size(); ++i) {
    text += ' ' + choice.layouts[i].toString() + artifact::EnumNameDType(request.operands[i].dtype);
    for (int64_t extent : request.operands[i].shape)
      text += ',' + std::to_string(extent);
  }
  return {text.begin(), text.end()};
}
