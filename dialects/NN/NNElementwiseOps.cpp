// Elementwise ops: result types, verification, folding.

#include "dialects/NN/Elementwise.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc::nn {
/// True if the op computes in the element type of its operand, which the result must have, too.
static bool keepsElementType(Operation *op, Value operand) {
  bool isCondition = isa<SelectOp>(op) && operand == op->getOperand(0);
  return !isCondition && !isa<CastOp, CompareOp>(op);
}

LogicalResult verifyElementwise(Operation *op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  for (Value operand : fullOperands(op)) {
    auto other = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || !other || other.getShape() != type.getShape())
      return op->emitOpError("is elementwise, but an operand has type ")
             << operand.getType() << " and the result " << op->getResult(0).getType();
    if (other.getEncoding() != type.getEncoding())
      return op->emitOpError("is elementwise, but layouts differ: ")
             << operand.getType() << " and " << op->getResult(0).getType();
    if (keepsElementType(op, operand) && other.getElementType() != type.getElementType())
      return op->emitOpError("computes in one element type, but an operand has type ")
             << operand.getType() << " and the result " << type << "; convert by nn.cast";
  }
  return success();
}
} // namespace dlc::nn

//===- Result types ---------------------------------------------------------------------------===//

#define DLC_INFER_SAME_AS(OP, OPERAND)                                                             \
  LogicalResult OP::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,      \
                                     SmallVectorImpl<Type> &types) {                               \
    types.push_back(logicalType(tensorType(adaptor.OPERAND())));                                   \
    return success();                                                                              \
  }
DLC_INFER_SAME_AS(NegOp, getX)
DLC_INFER_SAME_AS(AbsOp, getX)
DLC_INFER_SAME_AS(ExpOp, getX)
DLC_INFER_SAME_AS(LogOp, getX)
DLC_INFER_SAME_AS(SqrtOp, getX)
DLC_INFER_SAME_AS(RsqrtOp, getX)
DLC_INFER_SAME_AS(TanhOp, getX)
DLC_INFER_SAME_AS(ReluOp, getX)
DLC_INFER_SAME_AS(SigmoidOp, getX)
DLC_INFER_SAME_AS(SoftplusOp, getX)
DLC_INFER_SAME_AS(ErfOp, getX)
DLC_INFER_SAME_AS(StopGradientOp, getX)
DLC_INFER_SAME_AS(AddOp, getA)
DLC_INFER_SAME_AS(SubOp, getA)
DLC_INFER_SAME_AS(MulOp, getA)
DLC_INFER_SAME_AS(DivOp, getA)
DLC_INFER_SAME_AS(MaxOp, getA)
DLC_INFER_SAME_AS(MinOp, getA)
DLC_INFER_SAME_AS(PowOp, getA)
DLC_INFER_SAME_AS(AndOp, getA)
DLC_INFER_SAME_AS(OrOp, getA)
DLC_INFER_SAME_AS(NotOp, getX)
DLC_INFER_SAME_AS(SelectOp, getA)
DLC_INFER_SAME_AS(DropoutOp, getX)
#undef DLC_INFER_SAME_AS

LogicalResult CompareOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(
      RankedTensorType::get(tensorType(adaptor.getA()).getShape(), IntegerType::get(context, 1)));
  return success();
}

//===- Verification ---------------------------------------------------------------------------===//

LogicalResult CompareOp::verify() {
  if (tensorType(getA()).getElementType() != tensorType(getB()).getElementType())
    return emitOpError("compares ") << getA().getType() << " with " << getB().getType();
  return success();
}

LogicalResult CastOp::verify() {
  if (tensorType(getY()).getElementType().isInteger(1))
    return emitOpError("to i1 is spelled nn.compare");
  return success();
}

static LogicalResult verifyRandom(RandomOpInterface op) {
  for (Value scalar : op->getOperands().take_back(3))
    if (tensorType(scalar).getRank() != 0 || !tensorType(scalar).getElementType().isInteger(64))
      return op->emitOpError("takes seed, step and first_row as tensor<i64>, got ")
             << scalar.getType();
  if (op.getStream() > UINT32_MAX)
    return op->emitOpError("stream must fit in 32 bits");
  return success();
}

LogicalResult DropoutOp::verify() {
  double rate = getRate().convertToDouble();
  if (!(rate >= 0 && rate < 1))
    return emitOpError("rate is ") << rate << ", expected 0 <= rate < 1";
  return verifyRandom(*this);
}

//===- Decomposition --------------------------------------------------------------------------===//

SmallVector<Value> StopGradientOp::decompose(OpBuilder &) { return {getX()}; }
LogicalResult UniformOp::verify() { return verifyRandom(*this); }

LogicalResult NormalOp::verify() { return verifyRandom(*this); }

//===- Folding --------------------------------------------------------------------------------===//

OpFoldResult AddOp::fold(FoldAdaptor) {
  if (splatValue(getB()) == 0.0 && getA().getType() == getType())
    return getA();
  return {};
}

OpFoldResult SubOp::fold(FoldAdaptor) {
  if (splatValue(getB()) == 0.0 && getA().getType() == getType())
    return getA();
  return {};
}

OpFoldResult MulOp::fold(FoldAdaptor) {
  if (splatValue(getB()) == 1.0 && getA().getType() == getType())
    return getA();
  if (splatValue(getA()) == 1.0 && getB().getType() == getType())
    return getB();
  return {};
}

OpFoldResult DivOp::fold(FoldAdaptor) {
  if (splatValue(getB()) == 1.0 && getA().getType() == getType())
    return getA();
  return {};
}
