// Gradient rules of convolution, pooling, normalisation, matrix product and losses.
//
// conv, conv_transpose and conv_grad_data are one bilinear form in (big, weight, small), where big
// convolved with weight gives small: the gradient in each of the three is conv_grad_data,
// conv_grad_filter and conv of the other two.

#include "dialects/NN/Elementwise.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

/// Gradient before the epilogue max(., 0) of an op that has one.
template <typename Op> static Value beforeRelu(ImplicitLocOpBuilder &g, Op op, Value dy) {
  if (!op.getRelu())
    return dy;
  Value zero = splat(g, g.getLoc(), logicalType(tensorType(dy)), 0);
  Value positive = CompareOp::create(g, Comparison::GT, op.getY(), zero);
  return SelectOp::create(g, positive, dy, zero);
}

/// Sum over all dimensions but 1, the gradient of something added per channel.
static Value sumPerChannel(ImplicitLocOpBuilder &g, Value dy) {
  SmallVector<int64_t> dims{0};
  llvm::append_range(dims, llvm::seq<int64_t>(2, tensorType(dy).getRank()));
  return ReduceSumOp::create(g, castTo(g, dy, sumType(tensorType(dy)).getElementType()), dims);
}

//===- Convolutions ---------------------------------------------------------------------------===//

template <typename Op>
static Value convolve(ImplicitLocOpBuilder &g, Op op, Value big, Value weight) {
  return ConvOp::create(g, big, weight, /*bias=*/Value(), op.getStridesAttr(),
                        op.getPaddingLowAttr(), op.getPaddingHighAttr(), op.getDilationsAttr(),
                        op.getGroupsAttr(), /*relu=*/UnitAttr());
}

template <typename Op>
static Value gradData(ImplicitLocOpBuilder &g, Op op, Value big, Value weight, Value small) {
  return ConvGradDataOp::create(g, logicalType(tensorType(big)), small, weight, op.getStridesAttr(),
                                op.getPaddingLowAttr(), op.getPaddingHighAttr(),
                                op.getDilationsAttr(), op.getGroupsAttr());
}

template <typename Op>
static Value gradFilter(ImplicitLocOpBuilder &g, Op op, Value big, Value weight, Value small) {
  return ConvGradFilterOp::create(g, sumType(tensorType(weight)), big, small, op.getStridesAttr(),
                                  op.getPaddingLowAttr(), op.getPaddingHighAttr(),
                                  op.getDilationsAttr(), op.getGroupsAttr());
}

void ConvOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                           MutableArrayRef<Value> operandGradients) {
  ImplicitLocOpBuilder g(getLoc(), builder);
  Value dy = beforeRelu(g, *this, gradients[0]);
  if (wanted[0])
    operandGradients[0] = gradData(g, *this, getX(), getWeight(), dy);
  if (wanted[1])
    operandGradients[1] = gradFilter(g, *this, getX(), getWeight(), dy);
  if (getBias() && wanted[2])
    operandGradients[2] = castTo(g, sumPerChannel(g, dy), tensorType(getBias()).getElementType());
}

void ConvTransposeOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                                    MutableArrayRef<Value> operandGradients) {
  ImplicitLocOpBuilder g(getLoc(), builder);
  Value dy = beforeRelu(g, *this, gradients[0]);
  if (wanted[0])
    operandGradients[0] = convolve(g, *this, dy, getWeight());
  if (wanted[1])
    operandGradients[1] = gradFilter(g, *this, dy, getWeight(), getX());
  if (getBias() && wanted[2])
    operandGradients[2] = castTo(g, sumPerChannel(g, dy), tensorType(getBias()).getElementType());
}

void ConvGradDataOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                                   MutableArrayRef<Value> operandGradients) {
  ImplicitLocOpBuilder g(getLoc(), builder);
  if (wanted[0])
    operandGradients[0] = convolve(g, *this, gradients[0], getWeight());
  if (wanted[1])
    operandGradients[1] = gradFilter(g, *this, gradients[0], getWeight(), getDy());
}

//===- Matmul ---------------------------------------------------------------------------------===//

/// The gradient of `operand` as a product. A parameter's is kept as it is summed, an activation's
/// has the type in which activations are stored.
static Value multiply(ImplicitLocOpBuilder &g, Value operand, Value a, bool transposeA, Value b,
                      bool transposeB) {
  auto cast = operand.getDefiningOp<CastOp>();
  auto type = logicalType(tensorType(operand));
  if (cast && cast.getX().getDefiningOp<ReadOp>())
    type = sumType(type);
  return MatmulOp::create(g, type, a, b, /*bias=*/Value(), transposeA, transposeB, /*relu=*/false);
}

void MatmulOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                             MutableArrayRef<Value> operandGradients) {
  ImplicitLocOpBuilder g(getLoc(), builder);
  Value dy = beforeRelu(g, *this, gradients[0]);
  bool ta = getTransposeA(), tb = getTransposeB();
  if (wanted[0]) // dA = dY B', or its transpose
    operandGradients[0] = ta ? multiply(g, getA(), getB(), tb, dy, true)
                             : multiply(g, getA(), dy, false, getB(), !tb);
  if (wanted[1]) // dB = A' dY, or its transpose
    operandGradients[1] = tb ? multiply(g, getB(), dy, true, getA(), ta)
                             : multiply(g, getB(), getA(), !ta, dy, false);
  if (getBias() && wanted[2])
    operandGradients[2] = castTo(g, sumPerChannel(g, dy), tensorType(getBias()).getElementType());
}

//===- Pooling, normalisation, loss -----------------------------------------------------------===//

void MaxPoolOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                              MutableArrayRef<Value> operandGradients) {
  if (wanted[0])
    operandGradients[0] = MaxPoolGradOp::create(builder, getLoc(), logicalType(tensorType(getX())),
                                                gradients[0], getIndex(), getKernel(), getStrides(),
                                                getPaddingLow(), getPaddingHigh());
}

void AvgPoolOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                              MutableArrayRef<Value> operandGradients) {
  if (wanted[0])
    operandGradients[0] = AvgPoolGradOp::create(
        builder, getLoc(), logicalType(tensorType(getX())), gradients[0], getKernel(), getStrides(),
        getPaddingLow(), getPaddingHigh(), getCountPadding());
}

void UpsampleOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                               MutableArrayRef<Value> operandGradients) {
  if (wanted[0])
    operandGradients[0] = UpsampleGradOp::create(builder, getLoc(), logicalType(tensorType(getX())),
                                                 gradients[0], getScale(), getLinear());
}

void PixelShuffleOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                                   MutableArrayRef<Value> operandGradients) {
  if (wanted[0])
    operandGradients[0] =
        PixelShuffleOp::create(builder, getLoc(), gradients[0], getFactor(), !getInverse());
}

/// In inference the statistics are constants and the op is affine in x, scale and bias.
static void affineGradient(ImplicitLocOpBuilder &g, BatchNormOp op, Value dy, ArrayRef<bool> wanted,
                           MutableArrayRef<Value> operandGradients) {
  auto type = logicalType(tensorType(op.getX()));
  Type element = tensorType(op.getRunningVar()).getElementType();
  auto perElement = [&](Value value) -> Value {
    return BroadcastOp::create(g, type.clone(element), value, ArrayRef<int64_t>{1});
  };
  Value epsilon = splat(g, g.getLoc(), logicalType(tensorType(op.getRunningVar())),
                        op.getEpsilon().convertToDouble());
  Value inverse = RsqrtOp::create(g, AddOp::create(g, op.getRunningVar(), epsilon));
  dy = castTo(g, dy, element);
  if (wanted[0]) {
    Value factor = MulOp::create(g, castTo(g, op.getScale(), element), inverse);
    Value dx = MulOp::create(g, dy, perElement(factor));
    operandGradients[0] = castTo(g, dx, type.getElementType());
  }
  if (wanted[1]) {
    Value centred =
        SubOp::create(g, castTo(g, op.getX(), element), perElement(op.getRunningMean()));
    Value sum = sumPerChannel(g, MulOp::create(g, dy, centred));
    operandGradients[1] =
        castTo(g, MulOp::create(g, sum, inverse), tensorType(op.getScale()).getElementType());
  }
  if (wanted[2])
    operandGradients[2] =
        castTo(g, sumPerChannel(g, dy), tensorType(op.getBias()).getElementType());
}

void BatchNormOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                                MutableArrayRef<Value> operandGradients) {
  ImplicitLocOpBuilder g(getLoc(), builder);
  if (!gradients[0]) // the statistics are stop-gradient
    return;
  if (!getTraining())
    return affineGradient(g, *this, gradients[0], wanted, operandGradients);
  auto grad = BatchNormGradOp::create(g, gradients[0], getX(), getScale(), getMean(), getVar(),
                                      getEpsilonAttr(), getSyncAttr());
  for (auto [i, value] : llvm::enumerate(grad.getResults()))
    if (wanted[i])
      operandGradients[i] = value;
}

void GroupNormOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                                MutableArrayRef<Value> operandGradients) {
  if (!gradients[0]) // the statistics are stop-gradient
    return;
  auto grad = GroupNormGradOp::create(builder, getLoc(), gradients[0], getX(), getScale(),
                                      getMean(), getVar(), getEpsilonAttr());
  for (auto [i, value] : llvm::enumerate(grad.getResults()))
    if (wanted[i])
      operandGradients[i] = value;
}

void SoftmaxCrossEntropyOp::buildGradient(OpBuilder &builder, ValueRange gradients,
                                          ArrayRef<bool> wanted,
                                          MutableArrayRef<Value> operandGradients) {
  if (wanted[0])
    operandGradients[0] = SoftmaxCrossEntropyGradOp::create(
        builder, getLoc(), getLogits(), getLabel(), gradients[0], getSmoothingAttr());
}
