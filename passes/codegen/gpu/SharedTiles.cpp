#include "passes/codegen/gpu/SharedTiles.h"

using namespace mlir;
using namespace dlc;

// That a kernel may declare, and that buffers begin at.
static constexpr int64_t mostBytes = 48 * 1024, alignment = 16;
static constexpr int64_t bankBytes = 4;

/// Elements from one row of a tile to the next: an odd number of banks, so that neither threads
/// along a row nor such across rows need the same one.
static int64_t rowPitch(int64_t extent, int64_t elementBytes) {
  int64_t perBank = std::max<int64_t>(1, bankBytes / elementBytes);
  return (llvm::divideCeil(extent, perBank) | 1) * perBank;
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
    weight *= isInnermost ? rowPitch(stage.loops[i].extent, elementBytes) : stage.loops[i].extent;
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

/// The copy of what a node reads, as bits, to a tile.
static StagePlan copyOf(const StagePlan &stage, const ClusterNode &node, const LinearForm &place,
                        unsigned tile) {
  StagePlan copy;
  SmallVector<unsigned> order = orderOf(stage, *node.form);
  for (unsigned loop : order)
    copy.loops.push_back(stage.loops[loop]);
  Type bits = IntegerType::get(node.element.getContext(), 8 * nn::elementBytes(node.element));
  copy.nodes.push_back({.kind = ClusterNode::Kind::Read,
                        .element = bits,
                        .buffer = node.buffer,
                        .form = inOrder(*node.form, order)});
  copy.writes.push_back(
      {.buffer = tile, .address = inOrder(place, order), .element = bits, .valid = {}});
  copy.items = stage.items;
  copy.chunk = stage.chunk;
  return copy;
}

std::optional<SharedTiles> SharedTiles::of(const StagePlan &stage) {
  if (stage.raggedLoop() ||
      llvm::none_of(stage.nodes, [&](const ClusterNode &node) { return loopAcross(stage, node); }))
    return std::nullopt;
  SharedTiles tiles;
  tiles.stage = stage;
  for (unsigned buffer : stageBuffers(stage))
    tiles.firstBuffer = std::max(tiles.firstBuffer, buffer + 1);
  for (ClusterNode &node : tiles.stage.nodes) {
    if (!loopAcross(stage, node))
      continue;
    int64_t elementBytes = nn::elementBytes(node.element);
    auto [place, elements] = placesInTile(stage, elementBytes);
    unsigned buffer = tiles.firstBuffer + tiles.copies.size();
    tiles.copies.push_back(copyOf(stage, node, place, buffer));
    tiles.offsets.push_back(tiles.bytes);
    tiles.bytes += llvm::alignTo(elements * elementBytes, alignment);
    node.buffer = buffer;
    node.form = place;
  }
  if (tiles.bytes > mostBytes)
    return std::nullopt;
  return tiles;
}
