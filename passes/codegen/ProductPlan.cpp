// Items are columns of y. Of a transposed b those are rows of memory, a few streams an item; else
// an item is a block of b's columns, narrow enough for many threads and for its sums to stay in
// the second-level cache.

#include "passes/codegen/ProductPlan.h"

using namespace mlir;
using namespace dlc;

std::optional<ProductPlan> dlc::planProduct(nn::MatmulOp op, const rt::ProductLimits &limits) {
  auto isMeant = [](Value value) {
    RankedTensorType type = nn::tensorType(value);
    Type element = type.getElementType();
    return (element.isF32() || element.isBF16()) && nn::layoutOf(type).isRowMajor();
  };
  if (op.getTransposeA() || !llvm::all_of(op->getOperands(), isMeant) || !isMeant(op.getY()))
    return std::nullopt;
  RankedTensorType a = nn::tensorType(op.getA()), b = nn::tensorType(op.getB());
  if (a.getElementType() != b.getElementType() || a.getDimSize(0) > limits.mostRows)
    return std::nullopt;
  ProductPlan plan{op,
                   a.getDimSize(0),
                   a.getDimSize(1),
                   nn::tensorType(op.getY()).getDimSize(1),
                   op.getTransposeB(),
                   op.getTransposeB() ? limits.dotColumns : limits.sumColumns,
                   /*chunk=*/1};
  plan.chunk = llvm::divideCeil(plan.items(), limits.mostChunks);
  return plan;
}

nn::MatmulOp dlc::productOf(Block &cluster) {
  return cluster.empty() ? nn::MatmulOp() : dyn_cast<nn::MatmulOp>(cluster.front());
}
