// From one loop per physical dimension to the loops that run. Adjacent loops become one where every
// linear form is contiguous over them. Then, from the innermost outwards, loops stay inside an item
// until it holds enough work; the loop that would exceed that is split at a divisor, so that no
// loop has a remainder but the vector one; a loop without a good divisor has a shorter last item.
// The item number enumerates the iterations of the loops outside. All that limits decide is the
// tile, an item's part of each joined loop, and the chunk: a plan that is stored has these.

#include "passes/codegen/ClusterPlan.h"

#include <numeric>

using namespace mlir;
using namespace dlc;

SmallVector<int64_t> StagePlan::extents() const {
  return llvm::map_to_vector(loops, [](const Loop &loop) { return loop.extent; });
}

SmallVector<unsigned> StagePlan::innerLoops(bool reduced) const {
  SmallVector<unsigned> inner;
  for (auto [i, loop] : llvm::enumerate(loops))
    if (!loop.item && loop.reduced == reduced)
      inner.push_back(i);
  return inner;
}

std::optional<unsigned> StagePlan::raggedLoop() const {
  for (auto [i, loop] : llvm::enumerate(loops))
    if (loop.last != 0)
      return i;
  return std::nullopt;
}

int64_t StagePlan::iterations() const {
  int64_t iterations = 1;
  for (size_t i = loops.size(); i-- > 0;) {
    // The loop before a ragged one counts together with it.
    bool ragged = loops[i].last != 0;
    iterations *=
        ragged ? (loops[i - 1].extent - 1) * loops[i].extent + loops[i].last : loops[i].extent;
    i -= ragged;
  }
  return iterations;
}

int64_t StagePlan::keptIterations() const {
  StagePlan kept;
  for (auto [i, loop] : llvm::enumerate(loops))
    kept.loops.push_back(loop.reduced ? Loop() : loop);
  return kept.iterations();
}

void StagePlan::dropEpilogue() {
  if (!epilogue)
    return;
  llvm::erase_if(writes, [&](const ClusterWrite &write) { return isEpilogue(write.node); });
  nodes.resize(*epilogue);
  epilogue.reset();
}

bool StagePlan::hasReduction() const {
  return llvm::any_of(writes, [](const ClusterWrite &write) { return write.reduction; });
}

bool StagePlan::storesTerms() const {
  return hasReduction() && llvm::any_of(writes, [&](const ClusterWrite &write) {
           return !write.reduction && !isEpilogue(write.node);
         });
}

static constexpr int64_t sectorBytes = 32;

bool dlc::isPlainRead(const ClusterNode &node) {
  return node.kind == ClusterNode::Kind::Read && node.form && node.quotients.empty() &&
         node.bounds.empty();
}

/// True if a reduction adds up what lies side by side, a sector or more, for each kept element.
static bool liesInRows(const StagePlan &stage, const LinearForm &form, Type element) {
  const StagePlan::Loop &innermost = stage.loops.back();
  return stage.hasReduction() && innermost.reduced && !innermost.item && form.weights.back() == 1 &&
         innermost.extent * nn::elementBytes(element) >= sectorBytes &&
         llvm::any_of(llvm::zip(stage.loops, form.weights), [](auto each) {
           const auto &[loop, weight] = each;
           return !loop.reduced && weight != 0;
         });
}

bool dlc::isReadInRows(const StagePlan &stage, const ClusterNode &node) {
  return isPlainRead(node) && liesInRows(stage, *node.form, node.element);
}

bool dlc::isWrittenInRows(const StagePlan &stage, const ClusterWrite &write) {
  return !write.reduction && !stage.isEpilogue(write.node) && write.valid.empty() &&
         liesInRows(stage, write.address, write.element);
}

std::optional<unsigned> dlc::loopAcross(const StagePlan &stage, const ClusterNode &node) {
  if (!isPlainRead(node) || stage.hasReduction())
    return std::nullopt;
  auto isWide = [&](const StagePlan::Loop &loop) {
    return !loop.item && loop.extent * nn::elementBytes(node.element) >= sectorBytes;
  };
  ArrayRef<int64_t> weights = node.form->weights;
  if (weights.back() == 0 || weights.back() == 1 || !isWide(stage.loops.back()))
    return std::nullopt;
  for (auto [i, loop] : llvm::enumerate(stage.loops))
    if (weights[i] == 1 && isWide(loop))
      return i;
  return std::nullopt;
}

//===- Loops ----------------------------------------------------------------------------------===//

namespace {
/// A loop of the result in terms of a loop of the source: index of source = sum of factor * index.
struct Piece {
  unsigned source;
  int64_t factor;
  StagePlan::Loop loop;
};

/// Calls `function` on each linear form of a stage.
template <typename Function> void forEachForm(StagePlan &stage, Function &&function) {
  for (ClusterNode &node : stage.nodes) {
    if (node.form)
      function(*node.form);
    for (Quotient &quotient : node.quotients)
      function(quotient.form);
    for (Bound &bound : node.bounds)
      function(bound.form);
  }
  for (ClusterWrite &write : stage.writes) {
    function(write.address);
    for (Bound &bound : write.valid)
      function(bound.form);
  }
}

/// Rewrites a stage to run over `pieces`.
void applyPieces(StagePlan &stage, ArrayRef<Piece> pieces) {
  forEachForm(stage, [&](LinearForm &form) {
    SmallVector<int64_t, 6> weights;
    for (const Piece &piece : pieces)
      weights.push_back(form.weights[piece.source] * piece.factor);
    form.weights = std::move(weights);
  });
  for (ClusterNode &node : stage.nodes) {
    if (!node.address)
      continue;
    MLIRContext *context = node.address.getContext();
    SmallVector<AffineExpr> old(stage.loops.size(), getAffineConstantExpr(0, context));
    for (auto [i, piece] : llvm::enumerate(pieces))
      old[piece.source] = old[piece.source] + getAffineDimExpr(i, context) * piece.factor;
    node.address = node.address.replaceDims(old);
  }
  stage.loops.clear();
  for (const Piece &piece : pieces)
    stage.loops.push_back(piece.loop);
}
} // namespace

/// Joins contiguous loops and drops those of one iteration.
static void collapseLoops(StagePlan &stage) {
  llvm::SmallBitVector pinned(stage.loops.size());
  for (ClusterNode &node : stage.nodes)
    if (node.address)
      for (unsigned i = 0; i < stage.loops.size(); ++i)
        if (node.address.isFunctionOfDim(i))
          pinned.set(i);
  SmallVector<Piece> pieces;
  for (auto [i, loop] : llvm::enumerate(stage.loops)) {
    if (loop.extent == 1)
      continue;
    bool joins = !pieces.empty() && !pinned[i] && !pinned[pieces.back().source] &&
                 pieces.back().loop.reduced == loop.reduced;
    if (joins)
      forEachForm(stage, [&, i = i, extent = loop.extent](LinearForm &form) {
        joins &= form.weights[pieces.back().source] == form.weights[i] * extent;
      });
    if (joins)
      pieces.back() = {unsigned(i), 1, {pieces.back().loop.extent * loop.extent, loop.reduced}};
    else
      pieces.push_back({unsigned(i), 1, loop});
  }
  if (pieces.empty())
    pieces.push_back({unsigned(stage.loops.size() - 1), 1, stage.loops.back()});
  applyPieces(stage, pieces);
}

/// Largest divisor of `extent` up to `limit`, a multiple of `multiple` if there is such a one; 1 if
/// there is none worth splitting for.
static int64_t bestDivisor(int64_t extent, int64_t limit, int64_t multiple) {
  int64_t best = 1;
  for (int64_t divisor = std::min(extent, limit); divisor > 1; --divisor) {
    if (extent % divisor != 0)
      continue;
    if (divisor % multiple == 0)
      return divisor;
    best = std::max(best, divisor);
  }
  return best;
}

static int64_t elementsOf(const StagePlan &stage) {
  int64_t elements = 1;
  for (const StagePlan::Loop &loop : stage.loops)
    elements *= loop.extent;
  return elements;
}

/// Of an innermost loop that a reduction keeps: all of it, or a divisor that keeps vectors aligned.
static int64_t chooseColumns(int64_t extent, int64_t limit, int64_t lanes) {
  int64_t part = bestDivisor(extent, limit, std::gcd(extent, lanes));
  return part > 1 ? part : extent;
}

/// Reductions that have parts of one result: each term of an item counts for all of them.
static int64_t partsOfResult(const StagePlan &stage) {
  const ClusterWrite &first = stage.writes.front();
  return llvm::count_if(stage.writes, [&](const ClusterWrite &write) {
    return write.reduction && write.reduction == first.reduction;
  });
}

/// The loop, if there is one, over which an operand lies that goes through memory which the threads
/// of an item share.
static std::optional<unsigned> sharedLoop(const StagePlan &stage, const rt::LoopLimits &limits) {
  if (limits.sharedRun > 0)
    for (const ClusterNode &node : stage.nodes)
      if (std::optional<unsigned> across = loopAcross(stage, node))
        return across;
  return std::nullopt;
}

/// The part of the innermost loop that leaves room for runs of such an operand: aligned ones, or
/// all of the loop across where none is. Not worth it: nothing.
static std::optional<int64_t> chooseSharedPart(int64_t extent, int64_t across, int64_t most,
                                               const rt::LoopLimits &limits) {
  int64_t lanes = limits.vectorLanes, run = bestDivisor(across, limits.sharedRun, lanes);
  if (run % lanes != 0 && across <= 4 * limits.sharedRun)
    run = across;
  int64_t part = bestDivisor(extent, most / run, lanes);
  return std::min(run, part) > 1 ? std::optional(part) : std::nullopt;
}

/// Elements of an item along each loop.
static SmallVector<int64_t> chooseTile(const StagePlan &stage, const rt::LoopLimits &limits,
                                       bool wholeResults) {
  int64_t kept = 1;
  for (const StagePlan::Loop &loop : stage.loops)
    kept *= loop.reduced ? 1 : loop.extent;
  bool keptItems = stage.hasReduction() && kept >= limits.manyKept;
  int64_t most = keptItems ? limits.keptItemElements : limits.itemElements;
  // Rows of no more elements go through shared memory.
  if (keptItems && limits.sharedRun > 0 &&
      llvm::any_of(stage.nodes, [&](const ClusterNode &node) { return isReadInRows(stage, node); }))
    most = std::min(most, 4 * limits.sharedRun);
  // Each item of a reduction has partial results of its own, which are combined by one thread.
  if (stage.hasReduction() && !keptItems && !wholeResults)
    most = std::clamp(elementsOf(stage) / limits.mostPartials, limits.itemElements,
                      limits.reducedItemElements);
  SmallVector<int64_t> tile(stage.loops.size(), 1);
  int64_t inside = 1;
  bool isFull = false;
  int64_t columns = wholeResults ? limits.combinedColumns : limits.reducedColumns;
  if (int64_t parts = partsOfResult(stage); parts > 1) {
    most *= parts;
    columns = std::max(columns / parts, limits.vectorLanes);
  }
  std::optional<unsigned> across = sharedLoop(stage, limits);
  std::optional<int64_t> innermostPart;
  if (across)
    innermostPart =
        chooseSharedPart(stage.loops.back().extent, stage.loops[*across].extent, most, limits);
  for (size_t i = stage.loops.size(); i-- > 0;) {
    const StagePlan::Loop &loop = stage.loops[i];
    bool isInnermost = i + 1 == stage.loops.size();
    int64_t limit = most / inside, lanes = isInnermost || i == across ? limits.vectorLanes : 1;
    if (isInnermost && innermostPart) {
      tile[i] = *innermostPart;
      inside *= tile[i];
    } else if ((keptItems || wholeResults) && loop.reduced) {
      tile[i] = loop.extent;
    } else if (stage.hasReduction() && !keptItems && isInnermost && !loop.reduced &&
               loop.extent > columns) {
      tile[i] = chooseColumns(loop.extent, columns, lanes);
      inside *= tile[i];
      isFull = wholeResults;
    } else if (!isFull && loop.extent <= limit) {
      tile[i] = loop.extent;
      inside *= loop.extent;
    } else if (!isFull) {
      tile[i] = bestDivisor(loop.extent, limit, lanes);
      if (inside * tile[i] < limits.leastItemElements)
        tile[i] = limit / lanes * lanes;
      isFull = true;
    }
  }
  return tile;
}

/// Splits the loops into those inside an item and those that its number enumerates.
static void applyTile(StagePlan &stage, ArrayRef<int64_t> tile) {
  SmallVector<Piece> pieces;
  stage.items = 1;
  for (auto [i, loop, part] : llvm::enumerate(stage.loops, tile)) {
    unsigned source = i;
    if (part == loop.extent) {
      pieces.push_back({source, 1, loop});
      continue;
    }
    int64_t count = llvm::divideCeil(loop.extent, part);
    stage.items *= count;
    pieces.push_back({source, part, {count, loop.reduced, /*item=*/true}});
    if (part > 1)
      pieces.push_back({source, 1, {part, loop.reduced, /*item=*/false, loop.extent % part}});
  }
  applyPieces(stage, pieces);
  stage.tile.assign(tile.begin(), tile.end());
}

static int64_t chooseChunk(const StagePlan &stage, const rt::LoopLimits &limits) {
  int64_t inside = 1, width = 0;
  for (const StagePlan::Loop &loop : stage.loops)
    inside *= loop.item ? 1 : loop.extent;
  for (const ClusterNode &node : stage.nodes)
    if (node.kind == ClusterNode::Kind::Read)
      width += nn::elementBytes(node.element);
  for (const ClusterWrite &write : stage.writes)
    width += write.reduction ? 0 : nn::elementBytes(write.element);
  int64_t chunk = std::max({int64_t{1}, limits.chunkBytes / std::max<int64_t>(1, inside * width),
                            (stage.items + limits.mostChunks - 1) / limits.mostChunks});
  return std::min(chunk, stage.items);
}

void dlc::planLoops(StagePlan &stage, const rt::LoopLimits &limits, bool wholeResults) {
  collapseLoops(stage);
  applyTile(stage, chooseTile(stage, limits, wholeResults));
  stage.chunk = chooseChunk(stage, limits);
}

LogicalResult dlc::restoreLoops(StagePlan &stage, const GeneratedStage &planned,
                                bool wholeResults) {
  collapseLoops(stage);
  if (planned.tile.size() != stage.loops.size())
    return failure();
  int64_t shorter = 0;
  for (auto [loop, part] : llvm::zip(stage.loops, planned.tile)) {
    if (part < 1 || part > loop.extent || (wholeResults && loop.reduced && part != loop.extent))
      return failure();
    shorter += loop.extent % part != 0;
  }
  // The innermost loop runs in vectors, and of an item there are two versions at most.
  if (shorter > 1 || (planned.tile.back() == 1 && stage.loops.back().extent > 1))
    return failure();
  applyTile(stage, planned.tile);
  stage.chunk = planned.chunk;
  return success();
}
