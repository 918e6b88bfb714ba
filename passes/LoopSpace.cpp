#include "passes/LoopSpace.h"

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

Address dlc::addressOf(RankedTensorType type, const Coordinates &coordinates,
                       ArrayRef<int64_t> extents) {
  MLIRContext *context = type.getContext();
  rt::Layout layout = nn::layoutOf(type);
  std::vector<int64_t> physical = layout.physicalShape(type.getShape().vec());
  SmallVector<int64_t> strides(physical.size(), 1);
  for (size_t i = physical.size(); i-- > 1;)
    strides[i - 1] = strides[i] * physical[i];
  Address address{LinearForm::constant(extents.size(), 0), getAffineConstantExpr(0, context)};
  std::vector<std::optional<LinearForm>> rest(coordinates.begin(), coordinates.end());
  SmallVector<AffineExpr> restExpressions;
  for (const LinearForm &form : coordinates)
    restExpressions.push_back(form.expression(context));
  auto addPart = [&](const std::optional<LinearForm> &part, AffineExpr expression, int64_t stride) {
    if (part && address.linear)
      address.linear->add(*part, stride);
    else
      address.linear.reset();
    address.expression = address.expression + expression * stride;
  };
  for (size_t i = layout.blocks.size(); i-- > 0;) {
    auto [dim, size] = layout.blocks[i];
    std::optional<std::pair<LinearForm, LinearForm>> parts;
    if (rest[dim])
      parts = rest[dim]->divide(size, extents);
    addPart(parts ? std::optional(parts->second) : std::nullopt, restExpressions[dim] % size,
            strides[layout.order.size() + i]);
    rest[dim] = parts ? std::optional(parts->first) : std::nullopt;
    restExpressions[dim] = restExpressions[dim].floorDiv(size);
  }
  for (auto [i, dim] : llvm::enumerate(layout.order))
    addPart(rest[dim], restExpressions[dim], strides[i]);
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
