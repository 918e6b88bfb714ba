#include "passes/codegen/cpu/vectorize/VectorNest.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dlc;

VectorNest::VectorNest(func::FuncOp function, size_t loops, int64_t lanes)
    : b(function.getLoc(), function), laneCount(lanes), loopIndices(loops) {
  enter(&function.front());
}

//===- Levels ---------------------------------------------------------------------------------===//

void VectorNest::leave() {
  levels.pop_back();
  forgetFrom(levels.size());
}

void VectorNest::moveTo(unsigned level) {
  const Level &at = levels[level];
  if (at.before)
    return b.setInsertionPoint(at.before);
  if (at.block->mightHaveTerminator())
    return b.setInsertionPoint(at.block->getTerminator());
  b.setInsertionPointToEnd(at.block);
}

void VectorNest::forgetFrom(unsigned level) {
  SmallVector<Value> gone;
  for (auto &[value, lanes] : values)
    if (lanes.level >= level)
      gone.push_back(value);
  for (Value value : gone)
    values.erase(value);
}

//===- Loops ----------------------------------------------------------------------------------===//

scf::ForOp VectorNest::openLoop(unsigned loop, OpFoldResult from, OpFoldResult to, int64_t step,
                                ValueRange carried) {
  moveToInnermost();
  auto bound = [&](OpFoldResult at) { return getValueOrCreateConstantIndexOp(b, b.getLoc(), at); };
  auto forOp = scf::ForOp::create(b, bound(from), bound(to), constant(step), carried);
  if (!levels.back().before)
    buildBefore(forOp);
  enter(forOp.getBody());
  int64_t stride = loop == vectorLoop() ? 1 : 0;
  loopIndices[loop] = {forOp.getInductionVar(), {}, stride, innermost()};
  return forOp;
}

/// The index is one of the outermost level: what depends on nothing else, as factors of channels,
/// is loaded before all loops. The code behind this one cannot know that no store changes it.
void VectorNest::fixIndex(unsigned loop, int64_t index) {
  moveTo(0);
  loopIndices[loop] = {constant(index), {}, loop == vectorLoop() ? 1 : 0, 0};
}

void VectorNest::openRemainder(int64_t whole) {
  Block *block = levels.back().block;
  moveToInnermost();
  // What this copy hoists goes before the loop above; what it computes, behind that loop.
  if (!levels.back().before)
    buildBefore(constant(0).getDefiningOp());
  enter(block);
  moveToInnermost();
  loopIndices[vectorLoop()] = {constant(whole), {}, 1, innermost()};
}

void VectorNest::closeRemainder() {
  laneMask = {};
  leave();
}

void VectorNest::keepLanes(int64_t count) {
  laneMask = vector::CreateMaskOp::create(b, vectorType(b.getI1Type()), constant(count));
}

//===- Values ---------------------------------------------------------------------------------===//

Value VectorNest::vectorOf(const Lanes &value) {
  if (value.vector)
    return value.vector;
  Value splat = vector::BroadcastOp::create(b, vectorType(value.scalar.getType()), value.scalar);
  if (value.stride == 0)
    return splat;
  VectorType type = vectorType(b.getIndexType());
  Value steps = vector::StepOp::create(b, type);
  Value stride = vector::BroadcastOp::create(b, type, constant(value.stride));
  return arith::AddIOp::create(b, splat, arith::MulIOp::create(b, steps, stride));
}
