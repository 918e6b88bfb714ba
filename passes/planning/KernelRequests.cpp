// One case per kind of op fills the attributes; operands and layouts are the same for all.

#include "passes/planning/KernelRequests.h"

#include "dialects/NN/ElementType.h"

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

bool dlc::isKernelResult(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isa<nn::NNDialect>(op->getDialect()) &&
         !isa<nn::ReadOp, nn::ConstantOp, nn::ReshapeOp>(op);
}

std::optional<rt::KernelRequest> dlc::kernelRequest(Operation *op, const PlanningTarget &target) {
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
  request->math = target.math;
  request->threads = target.threads;
  for (Value operand : op->getOperands())
    request->operands.push_back(operandOf(operand));
  for (Value result : op->getResults())
    request->operands.push_back(operandOf(result));
  return request;
}
