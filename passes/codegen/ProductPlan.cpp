// Items are columns of y. Of a transposed b those are rows of memory, a few streams an item; else
// an item is a block of b's columns, narrow enough for many threads and for its sums to stay in
// the second-level cache.

#include "passes/codegen/ProductPlan.h"

using namespace mlir;
using namespace dlc;

std::optional<ProductPlan> dlc::productWith(nn::MatmulOp op, int64_t itemColumns, int64_t chunk) {
  auto isMeant = [](Value value) {
    RankedTensorType type = nn::tensorType(value);
    Type element = type.getElementType();
    return (element.isF32() || element.isBF16()) && nn::layoutOf(type).isRowMajor();
  };
  RankedTensorType a = nn::tensorType(op.getA()), b = nn::tensorType(op.getB());
  if (op.getTransposeA() || !llvm::all_of(op->getOperands(), isMeant) || !isMeant(op.getY()) ||
      a.getElementType() != b.getElementType())
    return std::nullopt;
  return ProductPlan{op,
                     a.getDimSize(0),
                     a.getDimSize(1),
                     nn::tensorType(op.getY()).getDimSize(1),
                     op.getTransposeB(),
                     itemColumns,
                     chunk};
}

std::optional<ProductPlan> dlc::planProduct(nn::MatmulOp op, const rt::ProductLimits &limits) {
  int64_t columns = op.getTransposeB() ? limits.dotColumns : limits.sumColumns;
  std::optional<ProductPlan> plan = productWith(op, columns, /*chunk=*/1);
  if (!plan || plan->rows > limits.mostRows)
    return std::nullopt;
  plan->chunk = llvm::divideCeil(plan->items(), limits.mostChunks);
  return plan;
}

nn::MatmulOp dlc::productOf(Block &cluster) {
  return cluster.empty() ? nn::MatmulOp() : dyn_cast<nn::MatmulOp>(cluster.front());
}
