#include "passes/codegen/cpu/vectorize/ReductionVectorizer.h"
#include "passes/codegen/EmitScalars.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace dlc;

// Additions of one f32 accumulator in a run: a matter of f32, not of the machine. Squares of bf16
// have 16 bits: up to 256 of one magnitude add up exactly.
static constexpr int64_t runLength = 32;

ReductionVectorizer::ReductionVectorizer(const VectorPlan &plan, VectorNest &nest,
                                         VectorMemory &memory, BodyVectorizer &body,
                                         JammedIterations &jammed)
    : plan(plan), nest(nest), body(body), jammed(jammed), emitter(plan, nest, memory, jammed),
      b(nest.builder()), loops(plan.stage.innerLoops(/*reduced=*/true)),
      interleaved(plan.unrolling.interleaved) {}

void ReductionVectorizer::emit() {
  // If all is one run of f32, its results are the reduction's.
  inRun = isRun(0) && emitter.areRounded();
  emitter.store(reduce(0, emitter.identities(inRun)));
  inRun = false;
}

//===- Loops ----------------------------------------------------------------------------------===//

/// Iterations of the loops from a position on.
int64_t ReductionVectorizer::iterationsFrom(size_t position) const {
  int64_t iterations = 1;
  for (unsigned loop : ArrayRef(loops).drop_front(position))
    iterations *= llvm::divideCeil(extentOf(loop), nest.stepOf(loop));
  return iterations;
}

/// True if f32 is good enough for the terms of the loops from a position on.
bool ReductionVectorizer::isRun(size_t position) const {
  return !plan.sums.empty() && iterationsFrom(position) <= runLength * interleaved;
}

/// Where the interleaved iterations of a loop end.
int64_t ReductionVectorizer::evenExtent(unsigned loop) const {
  int64_t all = nest.stepOf(loop) * interleaved;
  return extentOf(loop) / all * all;
}

Accumulators ReductionVectorizer::reduceLoop(unsigned loop, OpFoldResult from, OpFoldResult to,
                                             int64_t step, Accumulators accumulators,
                                             Iteration iteration) {
  if (from == to)
    return accumulators;
  std::optional<int64_t> first = getConstantIntValue(from), last = getConstantIntValue(to);
  if (first && last && *last - *first <= step) {
    nest.fixIndex(loop, *first);
    accumulators = iteration(std::move(accumulators));
    nest.forgetFrom(0);
    return accumulators;
  }
  scf::ForOp forOp = nest.openLoop(loop, from, to, step, accumulators);
  Accumulators next = iteration(llvm::to_vector_of<Value>(forOp.getRegionIterArgs()));
  b.setInsertionPointToEnd(forOp.getBody());
  scf::YieldOp::create(b, next);
  nest.leave();
  nest.buildAtEnd();
  return llvm::to_vector_of<Value>(forOp.getResults());
}

Accumulators ReductionVectorizer::reduce(size_t position, Accumulators accumulators) {
  if (position == loops.size()) {
    emitBody(0, accumulators);
    return accumulators;
  }
  if (!inRun && isRun(position))
    return reduceRun(std::move(accumulators),
                     [&](Accumulators run) { return reduce(position, std::move(run)); });
  if (position + 1 == loops.size())
    return reduceInnermost(loops[position], std::move(accumulators));
  return reduceLoop(loops[position], b.getIndexAttr(0), b.getIndexAttr(extentOf(loops[position])),
                    1, std::move(accumulators),
                    [&](Accumulators inner) { return reduce(position + 1, inner); });
}

/// Adds to f64 sums what `iterations` add up in f32.
Accumulators ReductionVectorizer::reduceRun(Accumulators sums, Iteration iterations) {
  inRun = true;
  Accumulators run = iterations(emitter.identities(inRun));
  inRun = false;
  nest.buildAtEnd();
  run = emitter.combineInterleaved(std::move(run));
  for (auto [sum, part] : llvm::zip(sums, run))
    sum = arith::AddFOp::create(b, sum, emitResize(b, part, sum.getType()));
  return sums;
}

/// The last loop: interleaved iterations, then what is left with the accumulators of the first.
Accumulators ReductionVectorizer::reduceInnermost(unsigned loop, Accumulators accumulators) {
  if (!plan.sums.empty() && !inRun)
    return reduceStrips(loop, std::move(accumulators));
  return reduceRemainder(loop, reduceInterleaved(loop, b.getIndexAttr(0),
                                                 b.getIndexAttr(evenExtent(loop)),
                                                 std::move(accumulators)));
}

/// The last loop in runs.
Accumulators ReductionVectorizer::reduceStrips(unsigned loop, Accumulators accumulators) {
  int64_t even = evenExtent(loop), strip = nest.stepOf(loop) * interleaved * runLength;
  auto oneStrip = [&](Accumulators sums) {
    Value from = nest.index(loop).scalar;
    nest.moveTo(nest.index(loop).level);
    Value to = arith::AddIOp::create(b, from, nest.constant(strip));
    if (even % strip != 0)
      to = arith::MinUIOp::create(b, to, nest.constant(even));
    return reduceRun(std::move(sums), [&](Accumulators run) {
      return reduceInterleaved(loop, from, to, std::move(run));
    });
  };
  accumulators = reduceLoop(loop, b.getIndexAttr(0), b.getIndexAttr(even), strip,
                            std::move(accumulators), oneStrip);
  if (even == extentOf(loop))
    return accumulators;
  return reduceRun(std::move(accumulators),
                   [&](Accumulators run) { return reduceRemainder(loop, std::move(run)); });
}

Accumulators ReductionVectorizer::reduceInterleaved(unsigned loop, OpFoldResult from,
                                                    OpFoldResult to, Accumulators accumulators) {
  int64_t step = nest.stepOf(loop);
  auto iterations = [&](Accumulators inner) {
    const Lanes first = nest.index(loop);
    for (int64_t i = 0; i < interleaved; ++i) {
      nest.moveTo(first.level);
      if (i > 0) {
        Lanes index = first;
        index.scalar = arith::AddIOp::create(b, first.scalar, nest.constant(i * step));
        nest.setIndex(loop, index);
      }
      emitBody(i, inner);
      nest.forgetFrom(first.level); // the next iteration has another index
    }
    return inner;
  };
  return reduceLoop(loop, from, to, step * interleaved, std::move(accumulators), iterations);
}

/// The iterations of a loop behind the last interleaved ones.
Accumulators ReductionVectorizer::reduceRemainder(unsigned loop, Accumulators accumulators) {
  int64_t extent = extentOf(loop), step = nest.stepOf(loop), whole = extent / step * step;
  auto iteration = [&](Accumulators inner) {
    emitBody(0, inner);
    return inner;
  };
  accumulators = reduceLoop(loop, b.getIndexAttr(evenExtent(loop)), b.getIndexAttr(whole), step,
                            std::move(accumulators), iteration);
  if (whole == extent)
    return accumulators;
  nest.openRemainder(whole);
  nest.keepLanes(extent - whole);
  emitBody(0, accumulators);
  nest.closeRemainder();
  return accumulators;
}

/// The body for all jammed iterations, with the accumulators of an interleaved one.
void ReductionVectorizer::emitBody(int64_t interleavedIteration, Accumulators &accumulators) {
  for (size_t i = 0; i < jammed.size(); ++i) {
    jammed.enter(i);
    MutableArrayRef<Value> own = emitter.ofCopy(accumulators, interleavedIteration, i);
    llvm::copy(body.emit(i, own), own.begin());
    nest.forgetFrom(nest.innermost());
  }
}
