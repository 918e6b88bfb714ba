// One case per kind of op fills the attributes; operands and layouts are the same for all.

#include "passes/planning/KernelRequests.h"

#include "dialects/NN/ElementType.h"
#include "passes/planning/CachingPlanner.h"
#include "runtime/core/BackEnd.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;
using rt::KernelOp;

static rt::OperandType operandOf(Value value) {
  RankedTensorType type = nn::tensorType(value);
  return {nn::dtypeOf(type.getElementType()), type.getShape().vec(), nn::layoutOf(type)};
}

static std::vector<int64_t> toVector(ArrayRef<int64_t> values) {
  return {values.begin(), values.end()};
}

template <typename Op>
static rt::KernelRequest convolution(KernelOp kind, Op op, bool bias = false, bool relu = false) {
  rt::KernelRequest request;
  request.op = kind;
  request.strides = toVector(op.getStrides());
  request.paddingLow = toVector(op.getPaddingLow());
  request.paddingHigh = toVector(op.getPaddingHigh());
  request.dilations = toVector(op.getDilations());
  request.groups = static_cast<int64_t>(op.getGroups());
  request.bias = bias;
  request.relu = relu;
  return request;
}

template <typename Op> static rt::KernelRequest pooling(KernelOp kind, Op op) {
  rt::KernelRequest request;
  request.op = kind;
  request.kernel = toVector(op.getKernel());
  request.strides = toVector(op.getStrides());
  request.paddingLow = toVector(op.getPaddingLow());
  request.paddingHigh = toVector(op.getPaddingHigh());
  request.dilations.assign(request.kernel.size(), 1);
  return request;
}

static rt::KernelRequest product(nn::MatmulOp op) {
  rt::KernelRequest request;
  request.op = KernelOp::Matmul;
  request.transposeA = op.getTransposeA();
  request.transposeB = op.getTransposeB();
  request.bias = bool(op.getBias());
  request.relu = op.getRelu();
  return request;
}

/// True if generated code runs a pooling: windows tile the operand, and vectors of channels run
/// along memory. Then the gradient is a pointwise function of two smaller tensors, which the
/// readers of either compute for less than it takes to store it.
template <typename Pool>
static bool isTiling(Pool pool, RankedTensorType type, const rt::Layout &layout) {
  auto isZero = [](int64_t value) { return value == 0; };
  if (!llvm::equal(pool.getKernel(), pool.getStrides()) ||
      !llvm::all_of(pool.getPaddingLow(), isZero) || !llvm::all_of(pool.getPaddingHigh(), isZero))
    return false;
  for (auto [extent, window] : llvm::zip(type.getShape().drop_front(2), pool.getKernel()))
    if (extent % window != 0)
      return false;
  for (const rt::Layout::Block &block : layout.blocks)
    if (block.dim != 1)
      return false;
  return !layout.blocks.empty() || layout.order.back() == 1;
}

bool dlc::isLibraryPooling(Operation *op, const std::vector<rt::Layout> &layouts) {
  if (auto pool = dyn_cast<nn::MaxPoolOp>(op))
    return !isTiling(pool, pool.getX().getType(), layouts.front());
  auto grad = dyn_cast<nn::MaxPoolGradOp>(op);
  return grad && !isTiling(grad, grad.getDx().getType(), layouts.back());
}

bool dlc::isLibraryOp(Operation *op) {
  if (isa<nn::MaxPoolOp, nn::MaxPoolGradOp>(op)) {
    Value full = isa<nn::MaxPoolOp>(op) ? op->getOperand(0) : op->getResult(0);
    return isLibraryPooling(op, {nn::layoutOf(nn::tensorType(full))});
  }
  // Generated code reorders what no library does: f64 and what is stored as bytes or 64-bit
  // integers.
  if (auto reorder = dyn_cast<nn::ReorderOp>(op)) {
    auto isMoved = [](Type type) { return type.isF32() || type.isBF16() || type.isF16(); };
    return isMoved(reorder.getType().getElementType()) &&
           isMoved(nn::tensorType(reorder.getX()).getElementType());
  }
  return isa<nn::ConvOp, nn::ConvTransposeOp, nn::ConvGradDataOp, nn::ConvGradFilterOp,
             nn::MatmulOp>(op);
}

std::optional<rt::KernelRequest> dlc::kernelRequest(Operation *op, rt::Math math,
                                                    unsigned threads) {
  using Request = std::optional<rt::KernelRequest>;
  Request request =
      llvm::TypeSwitch<Operation *, Request>(op)
          .Case([](nn::ConvOp conv) {
            return convolution(KernelOp::Conv, conv, bool(conv.getBias()), conv.getRelu());
          })
          // The transposed convolution is the data gradient of the convolution from y to x.
          .Case([](nn::ConvTransposeOp conv) {
            return convolution(KernelOp::ConvGradData, conv, bool(conv.getBias()), conv.getRelu());
          })
          .Case([](nn::ConvGradDataOp conv) { return convolution(KernelOp::ConvGradData, conv); })
          .Case(
              [](nn::ConvGradFilterOp conv) { return convolution(KernelOp::ConvGradFilter, conv); })
          .Case([](nn::MatmulOp matmul) { return product(matmul); })
          .Case([](nn::MaxPoolOp pool) { return pooling(KernelOp::MaxPool, pool); })
          .Case([](nn::MaxPoolGradOp pool) { return pooling(KernelOp::MaxPoolGrad, pool); })
          .Case([](nn::ReorderOp) {
            rt::KernelRequest reorder;
            reorder.op = KernelOp::Reorder;
            return reorder;
          })
          .Default([](Operation *) { return Request(); });
  if (!request)
    return request;
  request->math = math;
  request->threads = threads;
  for (Value operand : op->getOperands())
    request->operands.push_back(operandOf(operand));
  for (Value result : op->getResults())
    request->operands.push_back(operandOf(result));
  return request;
}

//===- Target ---------------------------------------------------------------------------------===//

std::optional<PlanningTarget> PlanningTarget::of(nn::ModelOp model) {
  auto name = model->getAttrOfType<StringAttr>("target");
  auto threads = model->getAttrOfType<IntegerAttr>("threads");
  auto math = model->getAttrOfType<StringAttr>("math");
  if (!name || !threads || !math || threads.getInt() < 1)
    return std::nullopt;
  return PlanningTarget{name.str(), static_cast<unsigned>(threads.getInt()),
                        math.getValue() == "strict" ? rt::Math::Strict : rt::Math::Fast};
}

void PlanningTarget::writeTo(nn::ModelOp model) const {
  Builder builder(model.getContext());
  model->setAttr("target", builder.getStringAttr(name));
  model->setAttr("threads", builder.getI64IntegerAttr(threads));
  model->setAttr("math", builder.getStringAttr(math == rt::Math::Strict ? "strict" : "fast"));
}

std::unique_ptr<rt::KernelPlanner> dlc::openPlanner(const std::string &target, unsigned threads,
                                                    std::string &reason) {
  std::unique_ptr<rt::KernelPlanner> planner;
  if (const rt::BackEnd *backEnd = rt::findBackEnd(target, reason))
    planner = backEnd->makePlanner(target, threads, reason);
  if (!planner)
    return nullptr;
  return std::make_unique<CachingPlanner>(std::move(planner));
}

std::unique_ptr<rt::KernelPlanner> dlc::openPlanner(nn::ModelOp model) {
  std::optional<PlanningTarget> target = PlanningTarget::of(model);
  if (!target) {
    model.emitError("has no target, threads and math; run dlc-assign-layouts first");
    return nullptr;
  }
  std::string reason;
  std::unique_ptr<rt::KernelPlanner> planner = openPlanner(target->name, target->threads, reason);
  if (!planner)
    model.emitError(reason);
  return planner;
}
