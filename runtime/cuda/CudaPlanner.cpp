#include "runtime/cuda/CudaPlanner.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/cuda/plans/CudaPlan.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace dlc::rt {
namespace {

constexpr const char *productName = "cublaslt";
// Of a process beside its plan: the driver's context, modules and libraries.
constexpr uint64_t contextBytes = uint64_t{1} << 30;
constexpr unsigned channelBlock = 8; // 16 bytes of 16-bit channels, which tensor cores load at once

bool isConvolution(KernelOp op) { return weightOperand(op).has_value(); }

bool is16Bit(DType dtype) { return dtype == DType::BF16 || dtype == DType::F16; }

uint64_t product(const std::vector<int64_t> &values, size_t from = 0) {
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(from), values.end(),
                         uint64_t{1},
                         [](uint64_t a, int64_t b) { return a * static_cast<uint64_t>(b); });
}

/// FLOPs of the direct sum.
uint64_t flopsOf(const KernelRequest &request) {
  const std::vector<OperandType> &operands = request.operands;
  if (request.op == KernelOp::Matmul)
    return 2 * product(operands.back().shape) *
           static_cast<uint64_t>(operands[0].shape[request.transposeA ? 0 : 1]);
  size_t narrow = request.op == KernelOp::Conv           ? operands.size() - 1
                  : request.op == KernelOp::ConvGradData ? 0
                                                         : 1; // y or dy
  return 2 * product(operands[narrow].shape) *
         product(operands[*weightOperand(request.op)].shape, 1);
}

uint64_t bytesOf(const KernelRequest &request, const std::vector<Layout> &layouts) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < layouts.size(); ++i)
    bytes += physicalBytes(request.operands[i].dtype, request.operands[i].shape, layouts[i]);
  return bytes;
}

/// The operands whose channels are a convolution's inputs: x or dx, and the weight.
bool hasInputChannels(const KernelRequest &request, size_t operand) {
  size_t activation = request.op == KernelOp::ConvGradData ? request.operands.size() - 1 : 0;
  return operand == activation || operand == weightOperand(request.op);
}

/// Channels last, of everything; with input channels padded to whole loads as well, where they are
/// not. Fixed layouts leave those that agree with them.
std::vector<std::vector<Layout>> layoutChoices(const KernelRequest &request) {
  const std::vector<int64_t> &weight = request.operands[*weightOperand(request.op)].shape;
  bool canPad = is16Bit(request.operands[0].dtype) && request.groups == 1 &&
                weight[1] % channelBlock != 0 && request.op != KernelOp::ConvGradData;
  std::vector<std::vector<Layout>> choices;
  for (bool isPadded : {true, false}) {
    if (isPadded && !canPad)
      continue;
    std::vector<Layout> layouts;
    bool fits = true;
    for (size_t i = 0; i < request.operands.size(); ++i) {
      const OperandType &operand = request.operands[i];
      Layout layout = layoutIn(LayoutFamily::ChannelsLast, operand.shape.size(), channelBlock);
      if (isPadded && hasInputChannels(request, i))
        layout.blocks.push_back({1, channelBlock});
      fits = fits && (!operand.layout || *operand.layout == layout);
      layouts.push_back(std::move(layout));
    }
    if (fits)
      choices.push_back(std::move(layouts));
  }
  return choices;
}

/// What an engine multiplies with, given whether both factors have whole vectors of channels.
Unit unitOf(const cudnn::Engine &engine, const KernelRequest &request,
            const std::vector<Layout> &layouts) {
  if (!engine.has(cudnn::NumericalNote::TensorCore))
    return Unit::StrictConvolution;
  const OperandType &weight = request.operands[*weightOperand(request.op)];
  const Layout &layout = layouts[*weightOperand(request.op)];
  auto lanes = CudaPlan::vectorBytes / static_cast<int64_t>(sizeOf(weight.dtype));
  int64_t inputs = layout.outerExtent(weight.shape, 1) * layout.blockOf(1);
  return inputs % lanes == 0 && weight.shape[0] % lanes == 0 ? Unit::Convolution : Unit::Unaligned;
}

KernelRequest settled(KernelRequest request, const std::vector<Layout> &layouts) {
  for (size_t i = 0; i < layouts.size(); ++i)
    request.operands[i].layout = layouts[i];
  return request;
}

} // namespace

CudaPlanner::CudaPlanner(const std::string &targetName, const cudnn::Functions &library)
    : costs(targetName), library(library) {
  bool isFile = targetName.ends_with(".json");
  description = {.name = isFile ? costs.name() : targetName,
                 .features = {"sm_" + std::to_string(costs.architecture())},
                 .library = cudnn::nameOf(library),
                 .vectorBits = 128,
                 .dtypes = {DType::F32, DType::BF16, DType::F16},
                 .loops = CudaTarget::loops(),
                 .emitter = "gpu",
                 .table = isFile ? targetName : "",
                 .cacheBytes = costs.cacheBytes(),
                 .families = {LayoutFamily::ChannelsLast},
                 .channelBlock = channelBlock,
                 .generatesWindows = true,
                 .link = costs.link(),
                 // A device without more than that holds no plan: all are larger than a byte.
                 .memoryBytes = std::max(costs.memoryBytes(), contextBytes + 1) - contextBytes,
                 .besideMemory = "1 GiB for context and libraries",
                 .peaks = costs.peaks()};
}

/// All that plans of a request depend on.
static std::string keyOf(const KernelRequest &request) {
  std::string key;
  auto add = [&](int64_t value) { key += std::to_string(value) + ' '; };
  auto addAll = [&](const std::vector<int64_t> &values) {
    std::ranges::for_each(values, add);
    key += ';';
  };
  add(static_cast<int64_t>(request.op));
  for (const OperandType &operand : request.operands) {
    add(static_cast<int64_t>(operand.dtype));
    addAll(operand.shape);
    key += operand.layout->toString() + ';';
  }
  for (const std::vector<int64_t> &values :
       {request.strides, request.paddingLow, request.paddingHigh, request.dilations})
    addAll(values);
  for (int64_t value : {request.groups, int64_t{request.bias}, int64_t{request.relu},
                        static_cast<int64_t>(request.math)})
    add(value);
  return key;
}

const std::vector<cudnn::Plan> &CudaPlanner::plansOf(const KernelRequest &request,
                                                     std::string &reason) const {
  std::scoped_lock lock(mutex);
  auto [entry, isNew] = known.try_emplace(keyOf(request));
  Planned &planned = entry->second;
  if (isNew)
    if (std::optional<cudnn::Graph> graph = cudnn::Graph::of(library, request, planned.reason))
      planned.plans = graph->plans(costs.properties(),
                                   {.most = 1 + mostAlternatives,
                                    .workspaceBytes = slabBytes,
                                    .math = request.math,
                                    .clustersLast = costs.clustersLast()},
                                   planned.reason);
  reason = planned.reason;
  return planned.plans;
}

CandidateList CudaPlanner::convolutions(const KernelRequest &request) const {
  CandidateList list;
  list.reason = "cuDNN's convolutions are planned channels last";
  for (const std::vector<Layout> &layouts : layoutChoices(request)) {
    if (KernelRequest exact = settled(request, layouts); CudaPlan::isProduct(exact)) {
      list.add(product(exact, layouts));
      continue;
    }
    const std::vector<cudnn::Plan> &plans = plansOf(settled(request, layouts), list.reason);
    if (plans.empty())
      continue;
    const cudnn::Plan &plan = plans.front();
    KernelCandidate candidate{layouts, plan.engine.name()};
    candidate.workspaceBytes = std::max(plan.workspaceBytes, slabBytes);
    candidate.flops = flopsOf(request);
    candidate.bytes = bytesOf(request, layouts);
    const std::vector<int64_t> &weight = request.operands[*weightOperand(request.op)].shape;
    candidate.nanoseconds = costs.convolutionCost(
        request.operands[0].dtype, unitOf(plan.engine, request, layouts), candidate.flops,
        candidate.bytes, std::min(weight[0] / static_cast<int64_t>(request.groups), weight[1]));
    list.add(std::move(candidate));
  }
  return list;
}

KernelCandidate CudaPlanner::product(const KernelRequest &request,
                                     std::vector<Layout> layouts) const {
  KernelCandidate candidate{std::move(layouts), productName, slabBytes, flopsOf(request)};
  candidate.bytes = bytesOf(request, candidate.layouts);
  ProductPlan plan = CudaPlan::productOf(request);
  uint64_t lanes = uint64_t{CudaPlan::vectorBytes} / sizeOf(plan.factors);
  bool isAligned = plan.n % lanes == 0 && plan.k % lanes == 0;
  Unit unit = plan.factors == DType::F32 && plan.exact ? Unit::Simt
              : isAligned                              ? Unit::Product
                                                       : Unit::Unaligned;
  candidate.nanoseconds = costs.kernelCost(plan.factors, unit, candidate.flops, candidate.bytes);
  return candidate;
}

CandidateList CudaPlanner::products(const KernelRequest &request) const {
  std::vector<Layout> layouts;
  for (const OperandType &operand : request.operands) {
    layouts.push_back(Layout::rowMajor(operand.shape.size()));
    if (operand.layout && !operand.layout->isRowMajor())
      return {{}, "cuBLASLt's products are planned for row-major matrices"};
  }
  if (!CudaPlan::isProduct(request))
    return {{}, "cuBLASLt has no product of these types"};
  return {{product(request, std::move(layouts))}, ""};
}

CandidateList CudaPlanner::candidates(const KernelRequest &request) noexcept {
  try {
    if (isConvolution(request.op))
      return convolutions(request);
    if (request.op == KernelOp::Matmul)
      return products(request);
    return {{}, "NVIDIA's libraries have no kernel for it that is there already"};
  } catch (const std::exception &error) {
    return {{}, error.what()};
  }
}

std::vector<uint8_t> CudaPlanner::finalise(const KernelRequest &request,
                                           const KernelCandidate &choice,
                                           std::string &reason) noexcept {
  try {
    KernelRequest exact = settled(request, choice.layouts);
    CudaPlan plan;
    plan.workspaceBytes = choice.workspaceBytes;
    if (choice.implementation == productName) {
      plan.product = CudaPlan::productOf(exact);
      return plan.serialize();
    }
    for (const cudnn::Plan &found : plansOf(exact, reason))
      plan.convolutions.push_back(found.json);
    return plan.convolutions.empty() ? std::vector<uint8_t>() : plan.serialize();
  } catch (const std::exception &error) {
    reason = error.what();
    return {};
  }
}

double CudaPlanner::generatedCost(uint64_t bytes, uint64_t flops) const noexcept {
  return costs.kernelCost(DType::F32, Unit::Simt, flops, bytes);
}

double CudaPlanner::generatedCost(const KernelRequest &) const noexcept {
  return std::numeric_limits<double>::infinity();
}

std::unique_ptr<KernelPlanner> makeCudaPlanner(const std::string &targetName, unsigned,
                                               std::string &reason) noexcept {
  try {
    CudaTarget known(targetName); // a wrong name is told first
    const cudnn::Functions *library = cudnn::open(reason);
    if (!library) {
      reason = "cannot plan for " + targetName + ": " + reason;
      return nullptr;
    }
    return std::make_unique<CudaPlanner>(targetName, *library);
  } catch (const std::exception &error) {
    reason = error.what();
    return nullptr;
  }
}

} // namespace dlc::rt
