// Gradient rules of the ops that move, repeat or reduce elements.

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

/// The dimensions of a tensor of this rank that are not in `dims`.
static SmallVector<int64_t> complement(ArrayRef<int64_t> dims, int64_t rank) {
  return llvm::filter_to_vector(llvm::seq<int64_t>(0, rank),
                                [&](int64_t dim) { return !llvm::is_contained(dims, dim); });
}

void BroadcastOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                                MutableArrayRef<Value> operandGradients) {
  if (!wanted[0])
    return;
  Value dy = gradients[0];
  if (RankedTensorType type = sumType(tensorType(dy)); dy.getType() != type)
    dy = CastOp::create(builder, getLoc(), type, dy);
  operandGradients[0] = ReduceSumOp::create(builder, getLoc(), dy,
                                            complement(getDims(), tensorType(getY()).getRank()));
}

void ReduceSumOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                                MutableArrayRef<Value> operandGradients) {
  auto type = logicalType(tensorType(getX()));
  if (wanted[0])
    operandGradients[0] = BroadcastOp::create(builder, getLoc(), type, gradients[0],
                                              complement(getDims(), type.getRank()));
}

/// Equal shares to all that are the maximum, as one-sided derivatives average out.
void ReduceMaxOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                                MutableArrayRef<Value> operandGradients) {
  if (!wanted[0])
    return;
  auto type = logicalType(tensorType(getX()));
  SmallVector<int64_t> kept = complement(getDims(), type.getRank());
  auto spread = [&](Value value) -> Value {
    return BroadcastOp::create(builder, getLoc(), type, value, kept);
  };
  auto constant = [&](double value) { return splat(builder, getLoc(), type, value); };
  Value isLargest = CompareOp::create(builder, getLoc(), Comparison::EQ, getX(), spread(getY()));
  Value hits = SelectOp::create(builder, getLoc(), isLargest, constant(1), constant(0));
  Value count = ReduceSumOp::create(builder, getLoc(), hits, getDims());
  Value share = DivOp::create(builder, getLoc(), gradients[0], count);
  operandGradients[0] = SelectOp::create(builder, getLoc(), isLargest, spread(share), constant(0));
}

void ReshapeOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                              MutableArrayRef<Value> operandGradients) {
  if (wanted[0])
    operandGradients[0] =
        ReshapeOp::create(builder, getLoc(), logicalType(tensorType(getX())), gradients[0]);
}

void TransposeOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                                MutableArrayRef<Value> operandGradients) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [i, dim] : llvm::enumerate(getPermutation()))
    inverse[dim] = static_cast<int64_t>(i);
  if (wanted[0])
    operandGradients[0] = TransposeOp::create(builder, getLoc(), gradients[0], inverse);
}

void ConcatOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                             MutableArrayRef<Value> operandGradients) {
  SmallVector<int64_t> start(tensorType(getY()).getRank(), 0);
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    ArrayRef<int64_t> size = tensorType(input).getShape();
    if (wanted[i])
      operandGradients[i] = SliceOp::create(builder, getLoc(), gradients[0], start, size);
    start[getDim()] += size[getDim()];
  }
}

void SliceOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                            MutableArrayRef<Value> operandGradients) {
  SmallVector<int64_t> high;
  for (auto [extent, start, size] : llvm::zip(tensorType(getX()).getShape(), getStart(), getSize()))
    high.push_back(extent - start - size);
  if (wanted[0])
    operandGradients[0] =
        PadOp::create(builder, getLoc(), gradients[0], getStart(), high, APFloat(0.0));
}

void PadOp::buildGradient(OpBuilder &builder, ValueRange gradients, ArrayRef<bool> wanted,
                          MutableArrayRef<Value> operandGradients) {
  if (wanted[0])
    operandGradients[0] =
        SliceOp::create(builder, getLoc(), gradients[0], getLow(), tensorType(getX()).getShape());
}
