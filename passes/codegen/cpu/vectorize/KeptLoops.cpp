#include "passes/codegen/cpu/vectorize/KeptLoops.h"

using namespace mlir;
using namespace dlc;

KeptLoops::KeptLoops(const VectorPlan &plan, VectorNest &nest, VectorMemory &memory)
    : plan(plan), nest(nest), loops(plan.stage.innerLoops(/*reduced=*/false)),
      jammed(nest, plan.unrolling.jammedLoop), body(plan, nest, memory),
      reduction(plan, nest, memory, body, jammed) {}

/// The loops from a position on, and what is inside of them.
void KeptLoops::emitFrom(size_t position) {
  if (position == loops.size())
    return emitInside();
  unsigned loop = loops[position];
  if (loop == nest.vectorLoop())
    return emitVectors(position);
  Builder &b = nest.builder();
  nest.openLoop(loop, b.getIndexAttr(0), b.getIndexAttr(plan.stage.loops[loop].extent),
                jammedOf(loop));
  bool jams = loop == plan.unrolling.jammedLoop;
  if (jams)
    jammed.open(jammedOf(loop));
  emitFrom(position + 1);
  if (jams)
    jammed.close();
  nest.leave();
}

void KeptLoops::emitInside() {
  if (plan.stage.hasReduction())
    return reduction.emit();
  for (size_t i = 0; i < jammed.size(); ++i) {
    jammed.enter(i);
    body.emit(i, {});
  }
}

/// The vector loop in blocks of jammed iterations, then what is left, with the remainder.
void KeptLoops::emitVectors(size_t position) {
  unsigned loop = nest.vectorLoop();
  int64_t extent = plan.stage.loops[loop].extent, lanes = nest.lanes(), vectors = extent / lanes;
  int64_t block = jammedOf(loop);
  int64_t whole = vectors / block * block * lanes;
  Builder &b = nest.builder();
  if (whole == lanes * block) {
    nest.fixIndex(loop, 0);
    emitBlock(position, block);
    nest.forgetFrom(0);
  } else if (whole > 0) {
    nest.openLoop(loop, b.getIndexAttr(0), b.getIndexAttr(whole), lanes * block);
    emitBlock(position, block);
    nest.leave();
  }
  if (whole == extent)
    return;
  nest.openRemainder(whole);
  emitBlock(position, vectors % block, extent % lanes);
  nest.closeRemainder();
}

/// Vectors from the vector loop's index on, then `left` lanes.
void KeptLoops::emitBlock(size_t position, int64_t vectors, int64_t left) {
  bool jams = nest.vectorLoop() == plan.unrolling.jammedLoop;
  if (jams)
    jammed.open(vectors + (left ? 1 : 0));
  if (left) {
    nest.keepLanes(left);
    if (jams)
      jammed.maskLast(nest.mask());
  }
  emitFrom(position + 1);
  if (jams)
    jammed.close();
}
