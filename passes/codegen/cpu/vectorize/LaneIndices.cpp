#include "passes/codegen/cpu/vectorize/LaneIndices.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

using namespace mlir;
using namespace dlc;

/// Factor of the lanes in an expression, if it is linear in them.
static std::optional<int64_t> strideOf(AffineExpr expression, ArrayRef<Lanes> operands) {
  if (auto dim = dyn_cast<AffineDimExpr>(expression))
    return operands[dim.getPosition()].vector ? std::nullopt
                                              : std::optional(operands[dim.getPosition()].stride);
  if (isa<AffineConstantExpr>(expression))
    return 0;
  auto binary = cast<AffineBinaryOpExpr>(expression);
  std::optional<int64_t> left = strideOf(binary.getLHS(), operands),
                         right = strideOf(binary.getRHS(), operands);
  if (!left || !right)
    return std::nullopt;
  if (expression.getKind() == AffineExprKind::Add)
    return *left + *right;
  if (*left == 0)
    return 0;
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (expression.getKind() == AffineExprKind::Mul && factor)
    return *left * factor.getValue();
  return std::nullopt;
}

Lanes dlc::evaluate(VectorNest &nest, AffineExpr expression, ArrayRef<Lanes> operands) {
  ImplicitLocOpBuilder &b = nest.builder();
  Lanes result;
  for (auto [i, operand] : llvm::enumerate(operands))
    if (expression.isFunctionOfDim(i))
      result.level = std::max(result.level, operand.level);
  if (std::optional<int64_t> stride = strideOf(expression, operands)) {
    SmallVector<Value> scalars;
    for (const Lanes &operand : operands)
      scalars.push_back(operand.scalar ? operand.scalar : nest.constant(0));
    AffineMap map = AffineMap::get(operands.size(), 0, expression);
    affine::canonicalizeMapAndOperands(&map, &scalars);
    result.scalar = affine::AffineApplyOp::create(b, map, scalars);
    result.stride = *stride;
    return result;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expression))
    return operands[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expression);
  Value left = nest.vectorOf(evaluate(nest, binary.getLHS(), operands));
  Value right = nest.vectorOf(evaluate(nest, binary.getRHS(), operands));
  switch (expression.getKind()) {
  case AffineExprKind::Add:
    result.vector = arith::AddIOp::create(b, left, right);
    break;
  case AffineExprKind::Mul:
    result.vector = arith::MulIOp::create(b, left, right);
    break;
  case AffineExprKind::FloorDiv: // Negative coordinates are masked out.
    result.vector = arith::DivUIOp::create(b, left, right);
    break;
  default:
    result.vector = arith::RemUIOp::create(b, left, right);
  }
  return result;
}

SmallVector<Lanes> dlc::evaluate(VectorNest &nest, AffineMap map) {
  SmallVector<Lanes> indices;
  for (AffineExpr result : map.getResults()) {
    unsigned level = 0;
    for (auto [i, index] : llvm::enumerate(nest.indices()))
      if (result.isFunctionOfDim(i))
        level = std::max(level, index.level);
    nest.moveTo(level);
    // Other loops may not be open yet.
    SmallVector<Lanes> operands(nest.indices());
    for (auto [i, operand] : llvm::enumerate(operands))
      if (!result.isFunctionOfDim(i))
        operand = {nest.constant(0), {}};
    indices.push_back(evaluate(nest, result, operands));
  }
  return indices;
}

bool dlc::areContiguous(ArrayRef<Lanes> indices) {
  return !indices.empty() && indices.back().stride == 1 && indices.back().scalar &&
         llvm::all_of(indices.drop_back(), [](const Lanes &index) { return index.isUniform(); });
}
