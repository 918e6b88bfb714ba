#include "passes/codegen/cpu/vectorize/VectorMemory.h"
#include "passes/codegen/cpu/vectorize/LaneIndices.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dlc;

VectorMemory::VectorMemory(VectorNest &nest, func::FuncOp before, func::FuncOp function)
    : nest(nest), b(nest.builder()), function(function) {
  // The function may have more arguments than the one before.
  for (auto [old, now] : llvm::zip(before.getArguments(), function.getArguments()))
    arguments.map(old, now);
}

Value VectorMemory::of(Value operand) {
  if (auto part = operand.getDefiningOp<memref::SubViewOp>())
    operand = part.getSource();
  if (operand.getDefiningOp<memref::GetGlobalOp>() && !arguments.contains(operand)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.front());
    b.clone(*operand.getDefiningOp(), arguments);
  }
  return arguments.lookup(operand);
}

/// Distances of the lanes' elements from lane 0's.
Value VectorMemory::offsetsOf(Value memory, ArrayRef<Lanes> indices) {
  auto type = cast<MemRefType>(memory.getType());
  int64_t distance = 1, stride = 0;
  for (size_t i = indices.size(); i-- > 0;) {
    stride += indices[i].stride * distance;
    distance *= type.getDimSize(i);
  }
  return nest.vectorOf({nest.constant(0), {}, stride});
}

Value VectorMemory::allLanes() {
  VectorType type = nest.vectorType(b.getI1Type());
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, true));
}

Lanes VectorMemory::loadScalar(Value memory, ArrayRef<Value> indices, const Lanes *inside) {
  if (!inside)
    return {memref::LoadOp::create(b, memory, indices), {}};
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  auto guarded = scf::IfOp::create(
      b, inside->scalar,
      [&](OpBuilder &nested, Location loc) {
        Value loaded = memref::LoadOp::create(nested, loc, memory, indices);
        scf::YieldOp::create(nested, loc, loaded);
      },
      [&](OpBuilder &nested, Location loc) {
        Value zero = arith::ConstantOp::create(nested, loc, nested.getZeroAttr(element));
        scf::YieldOp::create(nested, loc, zero);
      });
  return {guarded.getResult(0), {}};
}

Lanes VectorMemory::load(Value memory, ArrayRef<Lanes> indices, const Lanes *inside) {
  SmallVector<Value> scalars;
  for (const Lanes &index : indices)
    scalars.push_back(index.scalar ? index.scalar : nest.constant(0));
  bool uniform = llvm::all_of(indices, [](const Lanes &index) { return index.isUniform(); });
  if (uniform && (!inside || inside->isUniform()))
    return loadScalar(memory, scalars, inside);
  Value where = nest.mask();
  if (inside)
    where = where ? arith::AndIOp::create(b, where, nest.vectorOf(*inside)).getResult()
                  : nest.vectorOf(*inside);
  VectorType result = nest.vectorType(cast<MemRefType>(memory.getType()).getElementType());
  auto zeros = [&]() -> Value { return arith::ConstantOp::create(b, b.getZeroAttr(result)); };
  if (areContiguous(indices)) {
    if (!where)
      return {{}, vector::LoadOp::create(b, result, memory, scalars)};
    return {{}, vector::MaskedLoadOp::create(b, result, memory, scalars, where, zeros())};
  }
  if (!where)
    where = allLanes();
  Value offsets = indices.back().vector ? indices.back().vector : offsetsOf(memory, indices);
  return {{}, vector::GatherOp::create(b, result, memory, scalars, offsets, where, zeros())};
}

void VectorMemory::store(Value value, Value memory, ArrayRef<Lanes> indices, bool nonTemporal) {
  nest.moveToInnermost();
  SmallVector<Value> scalars;
  for (const Lanes &index : indices)
    scalars.push_back(index.scalar);
  if (nest.lanes() == 1) {
    memref::StoreOp::create(b, vector::ExtractOp::create(b, value, ArrayRef<int64_t>{0}), memory,
                            scalars);
    return;
  }
  Value where = nest.mask();
  if (areContiguous(indices)) {
    int64_t bits = cast<VectorType>(value.getType()).getElementTypeBitWidth();
    if (where)
      vector::MaskedStoreOp::create(b, memory, scalars, where, value);
    else if (nonTemporal)
      vector::StoreOp::create(b, value, memory, scalars, /*nontemporal=*/true,
                              llvm::Align(nest.lanes() * bits / 8));
    else
      vector::StoreOp::create(b, value, memory, scalars);
    return;
  }
  if (!where)
    where = allLanes();
  vector::ScatterOp::create(b, Type(), memory, scalars, offsetsOf(memory, indices), where, value);
}

// Of the cache, in bytes.
static constexpr int64_t lineBytes = 64;

bool dlc::fillsLines(const StagePlan &plan, const ClusterWrite &write, int64_t lanes) {
  bool aligned = write.address.offset % lanes == 0;
  for (auto [loop, weight] : llvm::enumerate(write.address.weights))
    aligned &= loop + 1 == plan.loops.size() ? weight == 1 : weight % lanes == 0;
  if (!aligned || plan.loops.back().extent % lanes != 0)
    return false;
  int64_t filled = 1, line = lineBytes / nn::elementBytes(write.element);
  for (bool grows = true; grows && filled < line;) {
    grows = false;
    for (auto [loop, weight] : llvm::zip(plan.loops, write.address.weights))
      if (!grows && weight == filled && loop.extent > 1) {
        filled *= loop.extent;
        grows = true;
      }
  }
  return filled >= line;
}
