// Items are columns of y. Of a transposed b those are rows of memory, a few streams an item; else
// an item is a block of b's columns, narrow enough for many threads and for its sums to stay in
// the second-level cache.

#include "passes/codegen/ProductPlan.h"

using namespace mlir;
using namespace dlc;

// More rows than this are work enough for library code.
static constexpr int64_t mostRows = 32;
// A multiple of 1, 2, 3 and 4 rows of b, whose sums are in registers. More of them read a block of
// a's rows more often while it is near.
static constexpr int64_t dotColumns = 48;
// A multiple of 1, 2, 3 and 4 vectors, of any width.
static constexpr int64_t sumColumns = 768;
// Chunks for many threads to share.
static constexpr int64_t chunks = 128;

int64_t ProductPlan::itemColumns() const { return transposed ? dotColumns : sumColumns; }

int64_t ProductPlan::items() const { return llvm::divideCeil(columns, itemColumns()); }

int64_t ProductPlan::chunk() const { return llvm::divideCeil(items(), chunks); }

std::optional<ProductPlan> dlc::planProduct(nn::MatmulOp op) {
  auto isMeant = [](Value value) {
    RankedTensorType type = nn::tensorType(value);
    Type element = type.getElementType();
    return (element.isF32() || element.isBF16()) && nn::layoutOf(type).isRowMajor();
  };
  if (op.getTransposeA() || !llvm::all_of(op->getOperands(), isMeant) || !isMeant(op.getY()))
    return std::nullopt;
  RankedTensorType a = nn::tensorType(op.getA()), b = nn::tensorType(op.getB());
  if (a.getElementType() != b.getElementType() || a.getDimSize(0) > mostRows)
    return std::nullopt;
  return ProductPlan{op, a.getDimSize(0), a.getDimSize(1), nn::tensorType(op.getY()).getDimSize(1),
                     op.getTransposeB()};
}

nn::MatmulOp dlc::productOf(Block &cluster) {
  return cluster.empty() ? nn::MatmulOp() : dyn_cast<nn::MatmulOp>(cluster.front());
}
