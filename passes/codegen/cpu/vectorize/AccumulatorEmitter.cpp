#include "passes/codegen/cpu/vectorize/AccumulatorEmitter.h"
#include "passes/codegen/EmitScalars.h"
#include "passes/codegen/cpu/vectorize/LaneIndices.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dlc;

AccumulatorEmitter::AccumulatorEmitter(const VectorPlan &plan, VectorNest &nest,
                                       VectorMemory &memory, JammedIterations &jammed)
    : plan(plan), nest(nest), memory(memory), jammed(jammed), b(nest.builder()) {
  for (const ClusterWrite &write : plan.stage.writes)
    if (write.reduction)
      reductions.push_back(&write);
}

MutableArrayRef<Value> AccumulatorEmitter::ofCopy(Accumulators &accumulators, size_t interleaved,
                                                  size_t jammedIteration) const {
  size_t copy = interleaved * jammed.size() + jammedIteration, writes = reductions.size();
  return MutableArrayRef(accumulators).slice(copy * writes, writes);
}

bool AccumulatorEmitter::areRounded() const {
  return llvm::none_of(reductions,
                       [](const ClusterWrite *write) { return write->element.isF64(); });
}

Accumulators AccumulatorEmitter::identities(bool inRun) {
  nest.moveToInnermost();
  Accumulators result;
  int64_t copies = inRun || plan.sums.empty() ? plan.unrolling.interleaved : 1;
  for (size_t copy = 0; copy < copies * jammed.size(); ++copy)
    for (const ClusterWrite *write : reductions) {
      Type type = inRun ? Type(b.getF32Type()) : write->accumulator;
      Value identity = emitConstant(b, type, identityOf(write->reduction));
      result.push_back(vector::BroadcastOp::create(b, nest.vectorType(type), identity));
    }
  return result;
}

Value AccumulatorEmitter::combine(const ClusterWrite &write, Value x, Value y) {
  if (addsUp(write.reduction))
    return arith::AddFOp::create(b, x, y);
  return arith::MaximumFOp::create(b, x, y);
}

/// One value of all lanes: halves are combined until one lane is left, since a chain of additions
/// would wait for each.
Value AccumulatorEmitter::combineLanes(const ClusterWrite &write, Value value) {
  for (int64_t left = nest.lanes(); left > 1;) {
    left /= 2;
    Value low = vector::ExtractStridedSliceOp::create(b, value, 0, left, 1);
    Value high = vector::ExtractStridedSliceOp::create(b, value, left, left, 1);
    value = combine(write, low, high);
  }
  return vector::ExtractOp::create(b, value, ArrayRef<int64_t>{0});
}

Accumulators AccumulatorEmitter::combineInterleaved(Accumulators accumulators) {
  nest.moveToInnermost();
  size_t own = jammed.size() * reductions.size();
  for (size_t i = own; i < accumulators.size(); ++i)
    accumulators[i % own] =
        combine(*reductions[i % reductions.size()], accumulators[i % own], accumulators[i]);
  accumulators.truncate(own);
  return accumulators;
}

void AccumulatorEmitter::store(Accumulators accumulators) {
  nest.buildAtEnd();
  accumulators = combineInterleaved(std::move(accumulators));
  linalg::GenericOp generic = plan.generic;
  ArrayRef<Value> rest = accumulators;
  for (size_t copy = 0; copy < jammed.size(); ++copy) {
    jammed.enter(copy);
    for (auto [i, write] : llvm::enumerate(plan.stage.writes)) {
      if (!write.reduction)
        continue;
      nest.moveToInnermost();
      store(write, generic.getDpsInitOperand(i), rest.front());
      rest = rest.drop_front();
    }
  }
}

/// Rounds an accumulator once and writes it; lanes that were reduced over are combined.
void AccumulatorEmitter::store(const ClusterWrite &write, OpOperand *out, Value value) {
  bool acrossLanes = plan.stage.loops[nest.vectorLoop()].reduced;
  if (acrossLanes)
    value = combineLanes(write, value);
  SmallVector<unsigned> buffers = stageBuffers(plan.stage);
  unsigned position = llvm::find(buffers, write.buffer) - buffers.begin();
  Value target = memory.argument(position);
  Type element = cast<MemRefType>(target.getType()).getElementType();
  if (element != getElementTypeOrSelf(value))
    value = emitResize(b, value, acrossLanes ? element : Type(nest.vectorType(element)));
  linalg::GenericOp generic = plan.generic;
  SmallVector<Lanes> indices = evaluate(nest, generic.getMatchingIndexingMap(out));
  nest.moveToInnermost();
  if (!acrossLanes)
    return memory.store(value, target, indices);
  SmallVector<Value> scalars;
  for (const Lanes &index : indices)
    scalars.push_back(index.scalar);
  memref::StoreOp::create(b, value, target, scalars);
}
