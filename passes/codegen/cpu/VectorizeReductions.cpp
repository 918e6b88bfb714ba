// The reduced loops of a stage: accumulators are values that they carry. Several copies of the body
// run side by side, each with accumulators of its own: of neighbouring vectors that are kept, and
// of iterations that follow each other (sides), since one chain of additions would wait for each.
//
// Sums are f64. Terms that are rounded to f32 in any case, or exact in it, are added in f32 for a
// run of few iterations, and the runs in f64: an error does not grow with the number of runs.

#include "passes/codegen/cpu/StageVectorizer.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dlc;

// Copies of the body in a reduction: as many additions are under way at once.
static constexpr int64_t mostCopies = 8;
// Additions of one f32 accumulator in a run. Squares of bf16 have 16 bits: up to 256 of one
// magnitude add up exactly.
static constexpr int64_t runLength = 32;

//===- Terms and copies -----------------------------------------------------------------------===//

/// An f32 as it lies in memory, or an integer.
static bool isStored(Value value) {
  return isa<BlockArgument>(value) ||
         isa<memref::LoadOp, scf::IfOp, arith::SIToFPOp>(value.getDefiningOp());
}

/// The f32 that a value of f64 was, or null.
static Value narrowed(Value value) {
  auto wide = value.getDefiningOp<arith::ExtFOp>();
  return wide && wide.getIn().getType().isF32() ? wide.getIn() : Value();
}

/// What bf16 holds: a product of two such is exact in f32.
static bool isBFloat16(Value value) {
  auto wide = value.getDefiningOp<arith::ExtFOp>();
  return wide && wide.getIn().getType().isBF16();
}

/// Finds the terms of all sums. Elements of f32 are left to f64, and so are products of f32 values,
/// computed or not, that are not rounded: a variance is the difference of a sum of squares and a
/// mean's, both of which may be millions of times as large. So are integers, whose sums are exact.
void StageVectorizer::planTerms() {
  if (firstReduced == order.size())
    return;
  SmallVector<Term> found;
  for (auto [write, sum] :
       llvm::zip(plan.writes, nestOp.getRegion().front().getTerminator()->getOperands())) {
    if (!write.reduction)
      continue;
    Term term;
    Operation *added = sum.getDefiningOp();
    if (auto valid = dyn_cast_if_present<arith::SelectOp>(added)) {
      term.inside = valid.getCondition();
      replaced.insert(valid);
      added = valid.getTrueValue().getDefiningOp();
    }
    replaced.insert(added);
    if (auto add = dyn_cast_if_present<arith::AddFOp>(added)) {
      term.value = narrowed(add.getRhs());
      if (auto product = term.value ? term.value.getDefiningOp<arith::MulFOp>() : nullptr)
        term = {product.getLhs(), product.getRhs(), term.inside};
    } else if (auto product = dyn_cast_if_present<math::FmaOp>(added)) {
      term.value = narrowed(product.getA());
      term.factor = narrowed(product.getB());
      if (!term.value || !term.factor || !isBFloat16(term.value) || !isBFloat16(term.factor))
        return;
    }
    if (!term.value || (isStored(term.value) && (!term.factor || isStored(term.factor))))
      return;
    found.push_back(term);
  }
  terms = std::move(found);
}

/// How many copies of the body have their accumulators in half of the registers: first as many
/// neighbours as there are, then iterations.
void StageVectorizer::planCopies() {
  if (reductions.empty() || firstReduced == order.size())
    return;
  int64_t registers = 0; // of one copy
  for (const ClusterWrite *write : reductions)
    registers += accumulatorType(write->reduction).isF64() ? 2 : 1;
  int64_t copies = std::clamp<int64_t>(lanes / registers, 1, mostCopies);
  const StagePlan::Loop &vectors = plan.loops[vectorDim];
  if (!vectors.reduced && !vectors.item)
    mostNeighbours = std::min<int64_t>(copies, llvm::divideCeil(vectors.extent, lanes));
  int64_t iterations = plan.loops[order.back()].extent / stepOf(order.back());
  sides = std::clamp<int64_t>(copies / mostNeighbours, 1, std::max<int64_t>(1, iterations));
}

/// True if f32 is good enough for all of a reduction: few iterations, results that are rounded.
bool StageVectorizer::isOneRun(size_t position) const {
  return !terms.empty() && iterationsFrom(position) <= runLength * sides &&
         llvm::none_of(reductions,
                       [](const ClusterWrite *write) { return write->element.isF64(); });
}

//===- Loops ----------------------------------------------------------------------------------===//

/// Iterations of the loops from a position on.
int64_t StageVectorizer::iterationsFrom(size_t position) const {
  int64_t iterations = 1;
  for (unsigned loop : ArrayRef(order).drop_front(position))
    iterations *= llvm::divideCeil(plan.loops[loop].extent, stepOf(loop));
  return iterations;
}

/// Where the iterations of a loop end that have one for each side.
int64_t StageVectorizer::evenExtent(unsigned loop) const {
  int64_t all = stepOf(loop) * sides;
  return plan.loops[loop].extent / all * all;
}

StageVectorizer::Accumulators StageVectorizer::reduceLoop(unsigned loop, OpFoldResult from,
                                                          OpFoldResult to, int64_t step,
                                                          Accumulators accumulators,
                                                          Iteration body) {
  if (from == to)
    return accumulators;
  std::optional<int64_t> first = getConstantIntValue(from), last = getConstantIntValue(to);
  if (first && last && *last - *first <= step) {
    fixIndex(loop, *first);
    accumulators = body(std::move(accumulators));
    forget(0);
    return accumulators;
  }
  scf::ForOp forOp = openLoop(loop, from, to, step, accumulators);
  Accumulators next = body(llvm::to_vector_of<Value>(forOp.getRegionIterArgs()));
  b.setInsertionPointToEnd(levels.back().block);
  scf::YieldOp::create(b, next);
  leaveLevel();
  // What follows the loop goes behind it.
  levels.back().before = nullptr;
  return llvm::to_vector_of<Value>(forOp.getResults());
}

StageVectorizer::Accumulators StageVectorizer::reduce(size_t position, Accumulators accumulators) {
  if (position == order.size()) {
    reduceSide(0, accumulators);
    return accumulators;
  }
  if (!terms.empty() && !inRun && iterationsFrom(position) <= runLength * sides)
    return reduceRun(std::move(accumulators),
                     [&](Accumulators run) { return reduce(position, std::move(run)); });
  if (position + 1 == order.size())
    return reduceInnermost(order[position], std::move(accumulators));
  return reduceLoop(order[position], b.getIndexAttr(0),
                    b.getIndexAttr(plan.loops[order[position]].extent), 1, std::move(accumulators),
                    [&](Accumulators inner) { return reduce(position + 1, inner); });
}

/// Adds to f64 sums what the body adds up in f32.
StageVectorizer::Accumulators StageVectorizer::reduceRun(Accumulators sums, Iteration body) {
  inRun = true;
  Accumulators run = body(identities());
  inRun = false;
  levels.back().before = nullptr;
  run = combineSides(std::move(run));
  for (auto [sum, part] : llvm::zip(sums, run))
    sum = arith::AddFOp::create(b, sum, emitResize(b, part, sum.getType()));
  return sums;
}

/// The last loop: all sides, then what is left on side 0.
StageVectorizer::Accumulators StageVectorizer::reduceInnermost(unsigned loop,
                                                               Accumulators accumulators) {
  if (!terms.empty() && !inRun)
    return reduceStrips(loop, std::move(accumulators));
  return reduceRest(loop, reduceSides(loop, b.getIndexAttr(0), b.getIndexAttr(evenExtent(loop)),
                                      std::move(accumulators)));
}

/// The last loop in runs.
StageVectorizer::Accumulators StageVectorizer::reduceStrips(unsigned loop,
                                                            Accumulators accumulators) {
  int64_t even = evenExtent(loop), strip = stepOf(loop) * sides * runLength;
  auto oneStrip = [&](Accumulators sums) {
    Value from = loopIndices[loop].scalar;
    moveTo(loopIndices[loop].level);
    Value to = arith::AddIOp::create(b, from, constant(strip));
    if (even % strip != 0)
      to = arith::MinUIOp::create(b, to, constant(even));
    return reduceRun(std::move(sums),
                     [&](Accumulators run) { return reduceSides(loop, from, to, std::move(run)); });
  };
  accumulators = reduceLoop(loop, b.getIndexAttr(0), b.getIndexAttr(even), strip,
                            std::move(accumulators), oneStrip);
  if (even == plan.loops[loop].extent)
    return accumulators;
  return reduceRun(std::move(accumulators),
                   [&](Accumulators run) { return reduceRest(loop, std::move(run)); });
}

StageVectorizer::Accumulators StageVectorizer::reduceSides(unsigned loop, OpFoldResult from,
                                                           OpFoldResult to,
                                                           Accumulators accumulators) {
  int64_t step = stepOf(loop);
  return reduceLoop(loop, from, to, step * sides, std::move(accumulators), [&](Accumulators inner) {
    const Lanes first = loopIndices[loop];
    for (int64_t side = 0; side < sides; ++side) {
      moveTo(first.level);
      if (side > 0)
        loopIndices[loop].scalar = arith::AddIOp::create(b, first.scalar, constant(side * step));
      reduceSide(side, inner);
      forget(first.level); // the next side has another index
    }
    return inner;
  });
}

/// What sides leave of a loop.
StageVectorizer::Accumulators StageVectorizer::reduceRest(unsigned loop,
                                                          Accumulators accumulators) {
  int64_t extent = plan.loops[loop].extent, step = stepOf(loop), whole = extent / step * step;
  accumulators = reduceLoop(loop, b.getIndexAttr(evenExtent(loop)), b.getIndexAttr(whole), step,
                            std::move(accumulators), [&](Accumulators inner) {
                              reduceSide(0, inner);
                              return inner;
                            });
  if (whole == extent)
    return accumulators;
  openRaggedEnd(whole);
  mask = vector::CreateMaskOp::create(b, vectorType(b.getI1Type()), constant(extent - whole));
  reduceSide(0, accumulators);
  closeRaggedEnd();
  return accumulators;
}

/// The body for all neighbours.
void StageVectorizer::reduceSide(int64_t side, Accumulators &accumulators) {
  size_t writes = reductions.size();
  for (size_t i = 0; i < neighbours.size(); ++i) {
    enterNeighbour(i);
    MutableArrayRef<Value> own =
        MutableArrayRef(accumulators).slice((side * neighbours.size() + i) * writes, writes);
    llvm::copy(emitBody(own), own.begin());
    forget(levels.size() - 1);
  }
}

void StageVectorizer::enterNeighbour(size_t next) {
  neighbour = next;
  if (next == 0)
    randomBits.clear();
  if (plan.loops[vectorDim].reduced)
    return;
  if (neighbours.size() > 1)
    forget(neighbours[next].index.level);
  loopIndices[neighbourLoop] = neighbours[next].index;
  if (neighbourLoop == vectorDim)
    mask = neighbours[next].mask;
}

//===- Accumulators ---------------------------------------------------------------------------===//

StageVectorizer::Accumulators StageVectorizer::identities() {
  moveTo(levels.size() - 1);
  Accumulators result;
  int64_t copies = inRun || terms.empty() ? sides : 1;
  for (size_t copy = 0; copy < copies * neighbours.size(); ++copy)
    for (const ClusterWrite *write : reductions) {
      Type type = inRun ? Type(b.getF32Type()) : accumulatorType(write->reduction);
      double identity =
          isa<nn::ReduceSumOp>(write->reduction) ? 0.0 : -std::numeric_limits<double>::infinity();
      result.push_back(
          vector::BroadcastOp::create(b, vectorType(type), emitConstant(b, type, identity)));
    }
  return result;
}

Value StageVectorizer::combine(const ClusterWrite &write, Value x, Value y) {
  if (isa<nn::ReduceSumOp>(write.reduction))
    return arith::AddFOp::create(b, x, y);
  return arith::MaximumFOp::create(b, x, y);
}

/// One value of all lanes: halves are combined until one lane is left, since a chain of additions
/// would wait for each.
Value StageVectorizer::combineLanes(const ClusterWrite &write, Value value) {
  for (int64_t left = lanes; left > 1;) {
    left /= 2;
    Value low = vector::ExtractStridedSliceOp::create(b, value, 0, left, 1);
    Value high = vector::ExtractStridedSliceOp::create(b, value, left, left, 1);
    value = combine(write, low, high);
  }
  return vector::ExtractOp::create(b, value, ArrayRef<int64_t>{0});
}

/// One accumulator for each neighbour and write.
StageVectorizer::Accumulators StageVectorizer::combineSides(Accumulators accumulators) {
  moveTo(levels.size() - 1);
  size_t own = neighbours.size() * reductions.size();
  for (size_t i = own; i < accumulators.size(); ++i)
    accumulators[i % own] =
        combine(*reductions[i % reductions.size()], accumulators[i % own], accumulators[i]);
  accumulators.truncate(own);
  return accumulators;
}

/// Combines the sides and writes the result of each neighbour.
void StageVectorizer::storeAccumulators(ArrayRef<Value> accumulators) {
  levels.back().before = nullptr;
  size_t count = neighbours.size(), writes = reductions.size();
  Accumulators combined = combineSides(Accumulators(accumulators));
  for (size_t own = 0; own < count; ++own) {
    enterNeighbour(own);
    unsigned next = 0;
    for (auto [i, write] : llvm::enumerate(plan.writes)) {
      if (!write.reduction)
        continue;
      moveTo(levels.size() - 1);
      storeAccumulator(write, nestOp.getDpsInitOperand(i), combined[own * writes + next++]);
    }
  }
}

/// Rounds an accumulator once and writes it; lanes that were reduced over are combined.
void StageVectorizer::storeAccumulator(const ClusterWrite &write, OpOperand *out, Value value) {
  bool acrossLanes = plan.loops[vectorDim].reduced;
  if (acrossLanes)
    value = combineLanes(write, value);
  SmallVector<unsigned> buffers = stageBuffers(plan);
  unsigned position = llvm::find(buffers, write.buffer) - buffers.begin();
  Value memory = function.getArgument(position);
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  if (element != getElementTypeOrSelf(value))
    value = emitResize(b, value, acrossLanes ? element : Type(vectorType(element)));
  SmallVector<Lanes> indices = evaluate(nestOp.getMatchingIndexingMap(out));
  moveTo(levels.size() - 1);
  if (!acrossLanes)
    return store(value, memory, indices);
  SmallVector<Value> scalars;
  for (const Lanes &index : indices)
    scalars.push_back(index.scalar);
  memref::StoreOp::create(b, value, memory, scalars);
}
