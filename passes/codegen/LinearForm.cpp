#include "passes/codegen/LinearForm.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dlc;

void LinearForm::add(const LinearForm &other, int64_t factor) {
  for (auto [weight, more] : llvm::zip(weights, other.weights))
    weight += factor * more;
  offset += factor * other.offset;
}

int64_t LinearForm::takeWhole(int64_t divisor) {
  int64_t whole = llvm::divideFloorSigned(offset, divisor);
  offset -= whole * divisor;
  return whole;
}

std::pair<int64_t, int64_t> LinearForm::range(ArrayRef<int64_t> extents) const {
  int64_t low = offset, high = offset;
  for (auto [weight, extent] : llvm::zip(weights, extents))
    (weight < 0 ? low : high) += weight * (extent - 1);
  return {low, high};
}

AffineExpr LinearForm::expression(MLIRContext *context) const {
  AffineExpr sum = getAffineConstantExpr(0, context);
  for (auto [i, weight] : llvm::enumerate(weights))
    sum = sum + getAffineDimExpr(i, context) * weight;
  return sum + offset;
}

std::optional<std::pair<LinearForm, LinearForm>>
LinearForm::divide(int64_t block, ArrayRef<int64_t> extents) const {
  LinearForm quotient = constant(weights.size(), 0), rest = quotient;
  for (auto [i, weight] : llvm::enumerate(weights)) {
    if (weight % block == 0)
      quotient.weights[i] = weight / block;
    else
      rest.weights[i] = weight;
  }
  rest.offset = offset;
  quotient.offset = rest.takeWhole(block);
  auto [low, high] = rest.range(extents);
  if (low < 0 || high >= block)
    return std::nullopt;
  return std::make_pair(quotient, rest);
}
