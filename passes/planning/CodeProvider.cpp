// Which ops that a library knows generated code can run, too.

#include "passes/codegen/ProductPlan.h"
#include "passes/planning/KernelProvider.h"
#include "runtime/artifact/LayoutIo.h"

using namespace mlir;
using namespace dlc;
using rt::KernelOp;
using rt::Layout;

static rt::CandidateList none() { return {{}, "no code can be generated for these operands"}; }

static uint64_t bytesOf(const rt::OperandType &operand, const Layout &layout) {
  return rt::physicalBytes(operand.dtype, operand.shape, layout);
}

static rt::KernelCandidate candidate(const rt::KernelRequest &request, std::vector<Layout> layouts,
                                     uint64_t flops, double nanoseconds) {
  uint64_t bytes = 0;
  for (auto [operand, layout] : llvm::zip(request.operands, layouts))
    bytes += bytesOf(operand, layout);
  return {std::move(layouts), generatedName.str(), /*workspaceBytes=*/0, flops, bytes, nanoseconds};
}

/// True if the windows of a pooling tile its larger operand.
static bool areTiles(const rt::KernelRequest &request) {
  bool isGradient = request.op == KernelOp::MaxPoolGrad;
  ArrayRef<int64_t> shape =
      isGradient ? request.operands.back().shape : request.operands.front().shape;
  auto isZero = [](int64_t value) { return value == 0; };
  return request.kernel == request.strides && llvm::all_of(request.paddingLow, isZero) &&
         llvm::all_of(request.paddingHigh, isZero) &&
         llvm::all_of(llvm::zip(shape.drop_front(2), request.kernel), [](auto pair) {
           auto [extent, window] = pair;
           return extent % window == 0;
         });
}

/// True of a gradient of 16 bits that several windows add to: generated code rounds their sum, a
/// library may round at each window.
static bool roundsSumsOfWindows(const rt::KernelRequest &request) {
  return request.op == KernelOp::MaxPoolGrad && request.operands.front().dtype != rt::DType::F32 &&
         rt::windowsOverlap(request);
}

/// True if vectors of channels run along memory.
static bool isChannelsInnermost(const Layout &layout) {
  if (layout.blocks.empty())
    return layout.order.back() == 1;
  return llvm::all_of(layout.blocks, [](Layout::Block block) { return block.dim == 1; });
}

/// Where windows are tiles, the gradient of a pooling is a pointwise function of two smaller
/// tensors. Its readers compute it for less than it takes to store it. All operands have one
/// layout. Such a kernel is a part of others, so it costs its traffic alone.
rt::CandidateList CodeProvider::pooling(const rt::KernelRequest &request) const {
  const rt::PlannerTarget &target = planner.target();
  if (!areTiles(request) && !target.generatesWindows && !roundsSumsOfWindows(request))
    return none();
  rt::CandidateList list;
  for (rt::LayoutFamily family : llvm::reverse(target.families)) {
    Layout layout =
        rt::layoutIn(family, request.operands.front().shape.size(), target.channelBlock);
    // A layout that is fixed need not be of a family.
    for (const rt::OperandType &operand : request.operands)
      if (operand.layout)
        layout = *operand.layout;
    bool isFree = llvm::all_of(request.operands, [&](const rt::OperandType &operand) {
      return !operand.layout || *operand.layout == layout;
    });
    auto isSame = [&](const rt::KernelCandidate &other) { return other.layouts.front() == layout; };
    if (!isFree || !isChannelsInnermost(layout) || llvm::any_of(list.candidates, isSame))
      continue;
    double nanoseconds = 0;
    for (const rt::OperandType &operand : request.operands)
      nanoseconds +=
          planner.generatedCost(bytesOf(operand, layout), 0) - planner.generatedCost(0, 0);
    std::vector<Layout> layouts(request.operands.size(), layout);
    list.add(candidate(request, std::move(layouts), /*flops=*/0, nanoseconds));
  }
  return list.candidates.empty() ? none() : list;
}

// Each is an instruction or two, and a load, of a kernel.
static constexpr int64_t mostTaps = 128;

/// True of a convolution in which each channel has a filter of its own, of not too many elements.
static bool hasFilterPerChannel(const rt::KernelRequest &request) {
  ArrayRef<int64_t> weight = request.operands[*rt::weightOperand(request.op)].shape;
  return request.groups > 1 && weight[0] == request.groups && weight[1] == 1 &&
         llvm::product_of(weight.drop_front(2)) <= mostTaps;
}

/// Taps outermost, channels innermost.
static Layout filterLayout(size_t rank) {
  Layout layout = Layout::rowMajor(rank);
  std::rotate(layout.order.begin(), layout.order.begin() + 2, layout.order.end());
  std::swap(layout.order[rank - 2], layout.order[rank - 1]);
  return layout;
}

/// A multiplication for each tap and element of the operand that the loops run over: the result, or
/// dy for a gradient of weights.
rt::CandidateList CodeProvider::depthwise(const rt::KernelRequest &request) const {
  const rt::PlannerTarget &target = planner.target();
  if (!target.generatesWindows || !hasFilterPerChannel(request))
    return none();
  size_t weight = *rt::weightOperand(request.op);
  const rt::OperandType &space =
      request.operands[request.op == KernelOp::ConvGradFilter ? 1 : request.operands.size() - 1];
  auto elements = [](ArrayRef<int64_t> shape) { return llvm::product_of(shape); };
  auto flops = static_cast<uint64_t>(2 * elements(space.shape) *
                                     elements(request.operands[weight].shape) / request.groups);
  rt::CandidateList list;
  for (rt::LayoutFamily family : target.families) {
    std::vector<Layout> layouts;
    bool fits = true;
    for (auto [i, operand] : llvm::enumerate(request.operands)) {
      size_t rank = operand.shape.size();
      layouts.push_back(i == weight ? filterLayout(rank)
                                    : rt::layoutIn(family, rank, target.channelBlock));
      fits &= !operand.layout || *operand.layout == layouts.back();
    }
    if (!fits || !isChannelsInnermost(layouts.front()) || !layouts.front().blocks.empty())
      continue;
    rt::KernelCandidate kernel = candidate(request, std::move(layouts), flops, /*nanoseconds=*/0);
    kernel.nanoseconds = planner.generatedCost(kernel.bytes, flops);
    list.add(std::move(kernel));
  }
  return list.candidates.empty() ? none() : list;
}

rt::CandidateList CodeProvider::product(nn::MatmulOp op, const rt::KernelRequest &request) const {
  std::optional<ProductPlan> plan = planProduct(op, planner.target().loops.products);
  bool isRowMajor = llvm::all_of(request.operands, [](const rt::OperandType &operand) {
    return !operand.layout || operand.layout->isRowMajor();
  });
  double nanoseconds = planner.generatedCost(request);
  if (!plan || !isRowMajor || std::isinf(nanoseconds))
    return none();
  std::vector<Layout> layouts;
  for (const rt::OperandType &operand : request.operands)
    layouts.push_back(Layout::rowMajor(operand.shape.size()));
  auto flops = static_cast<uint64_t>(2 * plan->rows * plan->inner * plan->columns);
  return {{candidate(request, std::move(layouts), flops, nanoseconds)}, ""};
}

rt::CandidateList CodeProvider::reorder(const rt::KernelRequest &request) const {
  std::vector<Layout> layouts;
  uint64_t bytes = 0;
  for (const rt::OperandType &operand : request.operands) {
    if (!operand.layout)
      return none();
    layouts.push_back(*operand.layout);
    bytes += bytesOf(operand, *operand.layout);
  }
  return {{candidate(request, std::move(layouts), /*flops=*/0, planner.generatedCost(bytes, 0))},
          ""};
}

rt::CandidateList CodeProvider::candidates(Operation *op, const rt::KernelRequest &request) {
  switch (request.op) {
  case KernelOp::MaxPool:
  case KernelOp::MaxPoolGrad:
    return pooling(request);
  case KernelOp::Conv:
  case KernelOp::ConvGradData:
  case KernelOp::ConvGradFilter:
    return depthwise(request);
  case KernelOp::Matmul:
    return product(cast<nn::MatmulOp>(op), request);
  case KernelOp::Reorder:
    return reorder(request);
  }
  llvm_unreachable("a request is of one of the kinds");
}
