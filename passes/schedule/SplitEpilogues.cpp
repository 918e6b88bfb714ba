#include "passes/schedule/SplitEpilogues.h"

#include "dialects/NN/Role.h"

using namespace mlir;
using namespace dlc;

/// Layouts are to come, but for those that vectors and matrices have in any case.
static bool isOffered(Operation *op, rt::KernelRequest request, TargetKernels &kernels) {
  for (rt::OperandType &operand : request.operands) {
    operand.layout.reset();
    if (operand.shape.size() < 3)
      operand.layout = rt::Layout::rowMajor(operand.shape.size());
  }
  return !kernels.candidates(op, request).candidates.empty();
}

static bool mustSplit(nn::EpilogueOpInterface op, TargetKernels &kernels) {
  rt::KernelRequest request = *kernels.request(op);
  if (!op.getBias() || isOffered(op, request, kernels))
    return false;
  request.bias = request.relu = false;
  request.operands.erase(request.operands.begin() +
                         op.getBiasMutable().begin()->getOperandNumber());
  return isOffered(op, request, kernels);
}

static void split(nn::EpilogueOpInterface op) {
  Value bias = op.getBias(), result = op->getResult(0);
  RankedTensorType type = nn::tensorType(result);
  nn::RoleStamp stamp(nn::roleOf(op));
  OpBuilder builder(op->getContext(), &stamp);
  builder.setInsertionPointAfter(op);
  if (RankedTensorType given = nn::tensorType(bias);
      given.getElementType() != type.getElementType())
    bias = nn::CastOp::create(builder, op->getLoc(), given.clone(type.getElementType()), bias);
  Value terms = nn::BroadcastOp::create(builder, op->getLoc(), type, bias, ArrayRef<int64_t>{1});
  auto sum = nn::AddOp::create(builder, op->getLoc(), result, terms);
  op.getBiasMutable().clear();
  Value last = sum;
  if (op.getRelu()) { // which comes behind the bias
    op.setRelu(false);
    last = nn::ReluOp::create(builder, op->getLoc(), sum);
  }
  result.replaceAllUsesExcept(last, sum);
}

void dlc::splitEpilogues(nn::ModelOp model, TargetKernels &kernels) {
  model.walk([&](nn::EpilogueOpInterface op) {
    if (mustSplit(op, kernels))
      split(op);
  });
}
