#include "passes/codegen/cpu/vectorize/VectorPlan.h"
#include "passes/codegen/EmitRandom.h"

using namespace mlir;
using namespace dlc;

// Copies of the body in a reduction: a CPU has as many additions under way at once.
static constexpr int64_t mostCopies = 8;

Unrolling::Unrolling(const StagePlan &stage, int64_t lanes) : jammedLoop(stage.loops.size() - 1) {
  if (stage.hasReduction())
    fillRegisters(stage, lanes);
  else
    shareRandom(stage, lanes);
}

/// True if four iterations of a loop, or of its vectors, are whole groups of elements.
static bool sharesCounters(const StagePlan &stage, unsigned loop, int64_t lanes) {
  int64_t extent = loop + 1 == stage.loops.size() ? lanes : stage.loops[loop].extent;
  if (extent % 4 != 0)
    return false;
  return llvm::all_of(stage.nodes, [&](const ClusterNode &node) {
    auto op = dyn_cast_if_present<nn::RandomOpInterface>(node.op);
    if (!op)
      return true;
    bool whole = elementsOfRow(op) % 4 == 0 && node.form->offset % 4 == 0;
    for (auto [i, weight] : llvm::enumerate(node.form->weights))
      whole &= i == loop ? weight == 1 : weight % 4 == 0;
    return whole;
  });
}

/// A random counter has the words of four elements that follow each other: a loop over those has
/// them open at once.
void Unrolling::shareRandom(const StagePlan &stage, int64_t lanes) {
  if (llvm::none_of(stage.nodes, [](const ClusterNode &node) {
        return isa_and_present<nn::RandomOpInterface>(node.op);
      }))
    return;
  for (unsigned loop : stage.innerLoops(/*reduced=*/false))
    if (sharesCounters(stage, loop, lanes)) {
      jammedLoop = loop;
      jammed = 4;
      sharesRandom = true;
    }
}

/// The copies of the body have their accumulators in half of the registers: first as many jammed
/// vectors as there are, then interleaved iterations.
void Unrolling::fillRegisters(const StagePlan &stage, int64_t lanes) {
  SmallVector<unsigned> reduced = stage.innerLoops(/*reduced=*/true);
  if (reduced.empty())
    return;
  int64_t registers = 0; // of one copy
  for (const ClusterWrite &write : stage.writes)
    if (write.reduction)
      registers += write.accumulator.isF64() ? 2 : 1;
  int64_t copies = std::clamp<int64_t>(lanes / registers, 1, mostCopies);
  const StagePlan::Loop &vectors = stage.loops.back();
  if (!vectors.reduced && !vectors.item)
    jammed = std::min<int64_t>(copies, llvm::divideCeil(vectors.extent, lanes));
  bool ofVectors = reduced.back() + 1 == stage.loops.size();
  int64_t iterations = stage.loops[reduced.back()].extent / (ofVectors ? lanes : 1);
  interleaved = std::clamp<int64_t>(copies / jammed, 1, std::max<int64_t>(1, iterations));
}
