#include "passes/codegen/LoopSpace.h"

using namespace mlir;
using namespace dlc;

int64_t dlc::paddedExtent(RankedTensorType type, const rt::Layout &layout, int64_t dim) {
  return llvm::alignTo(type.getDimSize(dim), layout.blockOf(dim));
}

LoopSpace dlc::spaceOf(RankedTensorType type) {
  rt::Layout layout = nn::layoutOf(type);
  LoopSpace space;
  for (int64_t extent : layout.physicalShape(type.getShape().vec()))
    space.extents.push_back(extent);
  // A scalar is a loop of one iteration.
  if (space.extents.empty())
    space.extents.push_back(1);
  unsigned loops = space.extents.size();
  space.coordinates.assign(type.getRank(), LinearForm::constant(loops, 0));
  for (auto [loop, dim] : llvm::enumerate(layout.order))
    space.coordinates[dim].weights[loop] = layout.blockOf(dim);
  SmallVector<int64_t> finer(type.getRank(), 1);
  for (size_t i = layout.blocks.size(); i-- > 0;) {
    rt::Layout::Block block = layout.blocks[i];
    space.coordinates[block.dim].weights[layout.order.size() + i] = finer[block.dim];
    finer[block.dim] *= block.size;
  }
  return space;
}

/// Elements between neighbours in each physical dimension.
static SmallVector<int64_t> stridesOf(RankedTensorType type, const rt::Layout &layout) {
  std::vector<int64_t> physical = layout.physicalShape(type.getShape().vec());
  SmallVector<int64_t> strides(physical.size(), 1);
  for (size_t i = physical.size(); i-- > 1;)
    strides[i - 1] = strides[i] * physical[i];
  return strides;
}

std::optional<LinearForm> dlc::addressOf(RankedTensorType type, const Coordinates &coordinates,
                                         ArrayRef<int64_t> extents) {
  rt::Layout layout = nn::layoutOf(type);
  SmallVector<int64_t> strides = stridesOf(type, layout);
  LinearForm address = LinearForm::constant(extents.size(), 0);
  Coordinates rest = coordinates;
  for (size_t i = layout.blocks.size(); i-- > 0;) {
    auto [dim, size] = layout.blocks[i];
    auto parts = rest[dim].divide(size, extents);
    if (!parts)
      return std::nullopt;
    address.add(parts->second, strides[layout.order.size() + i]);
    rest[dim] = parts->first;
  }
  for (auto [i, dim] : llvm::enumerate(layout.order))
    address.add(rest[dim], strides[i]);
  return address;
}

AffineExpr dlc::addressExpressionOf(RankedTensorType type, const Coordinates &coordinates) {
  MLIRContext *context = type.getContext();
  rt::Layout layout = nn::layoutOf(type);
  SmallVector<int64_t> strides = stridesOf(type, layout);
  AffineExpr address = getAffineConstantExpr(0, context);
  auto rest = llvm::map_to_vector(coordinates,
                                  [&](const LinearForm &form) { return form.expression(context); });
  for (size_t i = layout.blocks.size(); i-- > 0;) {
    auto [dim, size] = layout.blocks[i];
    address = address + rest[dim] % size * strides[layout.order.size() + i];
    rest[dim] = rest[dim].floorDiv(size);
  }
  for (auto [i, dim] : llvm::enumerate(layout.order))
    address = address + rest[dim] * strides[i];
  return address;
}

SmallVector<Bound> dlc::boundsOf(const Coordinates &coordinates, ArrayRef<int64_t> extents,
                                 llvm::function_ref<int64_t(int64_t)> extentOf) {
  SmallVector<Bound> bounds;
  for (auto [dim, form] : llvm::enumerate(coordinates)) {
    auto [low, high] = form.range(extents);
    if (low < 0 || high >= extentOf(dim))
      bounds.push_back({form, extentOf(dim)});
  }
  return bounds;
}
