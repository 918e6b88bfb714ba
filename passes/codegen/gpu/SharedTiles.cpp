#include "passes/codegen/gpu/SharedTiles.h"

#include "passes/codegen/gpu/ThreadPlan.h"

using namespace mlir;
using namespace dlc;

// That a kernel may declare, and that buffers begin at.
static constexpr int64_t mostBytes = 48 * 1024, alignment = 16;

/// Elements from one row of a tile to the next: an odd number of accesses, so that neither threads
/// along a row nor such across rows need the same bank.
static int64_t rowPitch(int64_t extent, int64_t perAccess) {
  return (llvm::divideCeil(extent, perAccess) | 1) * perAccess;
}

/// Elements that a thread reads of a tile at a time: a bank's worth, or those of a row that it adds
/// up together.
static int64_t elementsOfAccess(const StagePlan &stage, int64_t elementBytes) {
  return stage.hasReduction() ? ThreadPlan::lanesOf(stage, ThreadPlan::vectorBytes)
                              : std::max<int64_t>(1, ThreadPlan::bankBytes / elementBytes);
}

/// Where an element of the tile lies, in the order of the stage's loops, and how many there are.
static std::pair<LinearForm, int64_t> placesInTile(const StagePlan &stage, int64_t elementBytes) {
  LinearForm place = LinearForm::constant(stage.loops.size(), 0);
  int64_t weight = 1;
  for (size_t i = stage.loops.size(); i-- > 0;) {
    if (stage.loops[i].item)
      continue;
    place.weights[i] = weight;
    bool isInnermost = i + 1 == stage.loops.size();
    weight *= isInnermost ? rowPitch(stage.loops[i].extent, elementsOfAccess(stage, elementBytes))
                          : stage.loops[i].extent;
  }
  return {place, weight};
}

/// The loops of items, then those inside of them as an operand lies in memory.
static SmallVector<unsigned> orderOf(const StagePlan &stage, const LinearForm &operand) {
  auto order = llvm::to_vector(llvm::seq<unsigned>(0, stage.loops.size()));
  auto key = [&](unsigned loop) {
    bool isItem = stage.loops[loop].item;
    return std::tuple(!isItem, isItem ? 0 : -operand.weights[loop], loop);
  };
  llvm::sort(order, [&](unsigned a, unsigned b) { return key(a) < key(b); });
  return order;
}

static LinearForm inOrder(const LinearForm &form, ArrayRef<unsigned> order) {
  LinearForm result = LinearForm::constant(order.size(), form.offset);
  for (auto [weight, loop] : llvm::zip(result.weights, order))
    weight = form.weights[loop];
  return result;
}

/// As bits, over the loops of the whole stage in an order; none of them is a sum's here.
StagePlan SharedTiles::copyOf(const StagePlan &whole, ArrayRef<unsigned> order, Type element,
                              const Place &from, const Place &to) {
  StagePlan copy;
  for (unsigned loop : order) {
    copy.loops.push_back(whole.loops[loop]);
    copy.loops.back().reduced = false;
  }
  Type bits = IntegerType::get(element.getContext(), 8 * nn::elementBytes(element));
  copy.nodes.push_back({.kind = ClusterNode::Kind::Read,
                        .element = bits,
                        .buffer = from.buffer,
                        .form = inOrder(from.form, order)});
  copy.writes.push_back(
      {.buffer = to.buffer, .address = inOrder(to.form, order), .element = bits, .valid = {}});
  copy.items = whole.items;
  copy.chunk = whole.chunk;
  return copy;
}

/// True of a node that goes through a tile.
static bool isTiled(const StagePlan &stage, const ClusterNode &node) {
  return isReadInRows(stage, node) || loopAcross(stage, node);
}

/// True if there are elements to keep for all threads of a block, so that none shares a sum.
static bool keepsOneByOne(const StagePlan &stage) {
  int64_t kept = 1;
  for (unsigned loop : stage.innerLoops(/*reduced=*/false))
    kept *= stage.loops[loop].extent;
  return kept >= ThreadPlan::mostThreads;
}

SharedTiles::Place SharedTiles::addTile(const StagePlan &whole, Type element) {
  int64_t elementBytes = nn::elementBytes(element);
  auto [form, elements] = placesInTile(whole, elementBytes);
  Place tile{firstBuffer + static_cast<unsigned>(offsets.size()), form};
  offsets.push_back(bytes);
  bytes += llvm::alignTo(elements * elementBytes, alignment);
  return tile;
}

std::optional<SharedTiles> SharedTiles::of(const StagePlan &stage) {
  bool isNeeded =
      llvm::any_of(stage.nodes, [&](const ClusterNode &node) { return isTiled(stage, node); }) ||
      llvm::any_of(stage.writes,
                   [&](const ClusterWrite &write) { return isWrittenInRows(stage, write); });
  if (!isNeeded || stage.raggedLoop() || (stage.hasReduction() && !keepsOneByOne(stage)))
    return std::nullopt;
  SharedTiles tiles;
  tiles.stage = stage;
  for (unsigned buffer : stageBuffers(stage))
    tiles.firstBuffer = std::max(tiles.firstBuffer, buffer + 1);
  for (ClusterNode &node : tiles.stage.nodes) {
    if (!isTiled(stage, node))
      continue;
    Place global{node.buffer, *node.form}, tile = tiles.addTile(stage, node.element);
    SmallVector<unsigned> order = orderOf(stage, global.form);
    tiles.reads.push_back(copyOf(stage, order, node.element, global, tile));
    node.buffer = tile.buffer;
    node.form = tile.form;
  }
  for (ClusterWrite &write : tiles.stage.writes) {
    if (!isWrittenInRows(stage, write))
      continue;
    Place global{write.buffer, write.address}, tile = tiles.addTile(stage, write.element);
    SmallVector<unsigned> order = orderOf(stage, global.form);
    tiles.stores.push_back(copyOf(stage, order, write.element, tile, global));
    write.buffer = tile.buffer;
    write.address = tile.form;
  }
  if (tiles.bytes > mostBytes)
    return std::nullopt;
  return tiles;
}
