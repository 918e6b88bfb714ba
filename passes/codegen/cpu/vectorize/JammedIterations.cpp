#include "passes/codegen/cpu/vectorize/JammedIterations.h"

using namespace mlir;
using namespace dlc;

void JammedIterations::open(int64_t count) {
  ImplicitLocOpBuilder &b = nest.builder();
  const Lanes first = nest.index(loop);
  nest.moveTo(first.level);
  for (int64_t i = 0; i < count; ++i) {
    Lanes index = first;
    if (i > 0)
      index.scalar = arith::AddIOp::create(b, first.scalar, nest.constant(i * nest.stepOf(loop)));
    iterations.push_back({index, {}});
  }
}

void JammedIterations::enter(size_t i) {
  if (iterations.empty())
    return;
  if (iterations.size() > 1)
    nest.forgetFrom(iterations[i].index.level);
  nest.setIndex(loop, iterations[i].index);
  if (loop == nest.vectorLoop())
    nest.setMask(iterations[i].mask);
}
