// A linalg.generic becomes loops, the innermost over vectors. Order of the loops: the items of
// [begin, end), kept loops, reduced loops, the vector loop last among its kind. Where neighbours
// share work, several copies of the body run side by side. A ragged end of the vector loop is one
// masked copy of the body. Reductions are emitted in VectorizeReductions.cpp, the body in
// VectorizeBody.cpp.

#include "passes/codegen/cpu/StageVectorizer.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dlc;

StageVectorizer::StageVectorizer(LinalgStage &stage, const StagePlan &given, unsigned most)
    : stage(stage), plan(given), b(stage.function.getLoc(), stage.function), nestOp(stage.nest),
      vectorDim(plan.loops.size() - 1), neighbourLoop(vectorDim) {
  lanes = std::min<int64_t>(most, llvm::PowerOf2Ceil(plan.loops.back().extent));
  for (bool reduced : {false, true}) {
    for (auto [i, loop] : llvm::enumerate(plan.loops))
      if (!loop.item && loop.reduced == reduced)
        order.push_back(i);
    if (!reduced)
      firstReduced = order.size();
  }
  loopIndices.resize(plan.loops.size());
  for (const ClusterWrite &write : plan.writes)
    if (write.reduction)
      reductions.push_back(&write);
  planTerms();
}

/// What depends on the loops' extents.
void StageVectorizer::planBody() {
  neighbourLoop = vectorDim;
  mostNeighbours = sides = 1;
  sharesRandom = false;
  planCopies();
  planRandom();
}

/// A random counter has the words of four elements that follow each other: a loop over those has
/// them open at once.
void StageVectorizer::planRandom() {
  bool random = llvm::any_of(
      plan.nodes, [](const ClusterNode &node) { return isa_and_present<nn::DropoutOp>(node.op); });
  if (!random || plan.hasReduction())
    return;
  for (unsigned loop : order)
    if (sharesCounters(loop)) {
      neighbourLoop = loop;
      mostNeighbours = 4;
      sharesRandom = true;
    }
}

/// True if four iterations of a loop, or of its vectors, are whole groups of elements.
bool StageVectorizer::sharesCounters(unsigned loop) const {
  int64_t extent = loop == vectorDim ? lanes : plan.loops[loop].extent;
  if (extent % 4 != 0)
    return false;
  return llvm::all_of(plan.nodes, [&](const ClusterNode &node) {
    auto op = dyn_cast_if_present<nn::DropoutOp>(node.op);
    if (!op)
      return true;
    bool whole = elementsOfRow(op) % 4 == 0 && node.form->offset % 4 == 0;
    for (auto [i, weight] : llvm::enumerate(node.form->weights))
      whole &= i == loop ? weight == 1 : weight % 4 == 0;
    return whole;
  });
}

//===- Loops ----------------------------------------------------------------------------------===//

void StageVectorizer::enterLevel(Block *block) { levels.push_back({block, nullptr}); }

void StageVectorizer::leaveLevel() {
  levels.pop_back();
  forget(levels.size());
}

/// Drops what was computed in a level and inside of it.
void StageVectorizer::forget(unsigned level) {
  SmallVector<Value> gone;
  for (auto &[value, lanes] : values)
    if (lanes.level >= level)
      gone.push_back(value);
  for (Value value : gone)
    values.erase(value);
}

func::FuncOp StageVectorizer::run() {
  SmallVector<Type> types(stage.function.getArgumentTypes());
  types.append(2, b.getIndexType());
  function = func::FuncOp::create(b, stage.function.getName(), b.getFunctionType(types, {}));
  Block *entry = function.addEntryBlock();
  for (auto [old, now] : llvm::zip(stage.function.getArguments(), entry->getArguments()))
    arguments.map(old, now);
  b.setInsertionPointToEnd(entry);
  func::ReturnOp::create(b);
  enterLevel(entry);
  openItems();
  nestItem();
  b.setInsertionPoint(entry->getTerminator());
  // Stores past the caches are ordered by nothing else.
  if (llvm::any_of(plan.writes, [](const ClusterWrite &write) { return write.streams; }))
    LLVM::CallIntrinsicOp::create(b, b.getStringAttr("llvm.x86.sse.sfence"), ValueRange());
  stage.function.erase();
  return function;
}

/// The loop over items, and the indices of the loops that an item's number stands for.
void StageVectorizer::openItems() {
  moveTo(0);
  ValueRange range = function.getArguments().take_back(2);
  auto loop = scf::ForOp::create(b, range[0], range[1], constant(1));
  levels.back().before = loop;
  enterLevel(loop.getBody());
  moveTo(1);
  Value rest = loop.getInductionVar();
  for (size_t i = plan.loops.size(); i-- > 0;) {
    if (!plan.loops[i].item)
      continue;
    Value extent = constant(plan.loops[i].extent);
    loopIndices[i] = {arith::RemUIOp::create(b, rest, extent), {}, 0, 1};
    rest = arith::DivUIOp::create(b, rest, extent);
  }
}

/// The loops of an item; where the last one along a loop is shorter, in two versions.
void StageVectorizer::nestItem() {
  std::optional<unsigned> ragged = plan.raggedLoop();
  auto version = [&](Block *block) {
    planBody();
    if (block)
      enterLevel(block);
    nest(0);
    if (block)
      leaveLevel();
  };
  if (!ragged)
    return version(nullptr);
  moveTo(1);
  Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, loopIndices[*ragged - 1].scalar,
                                       constant(plan.loops[*ragged - 1].extent - 1));
  auto choice = scf::IfOp::create(b, isLast, /*withElseRegion=*/true);
  levels.back().before = choice;
  version(choice.elseBlock());
  plan.loops[*ragged].extent = plan.loops[*ragged].last;
  version(choice.thenBlock());
}

/// A loop in the innermost level, which becomes the new level.
scf::ForOp StageVectorizer::openLoop(unsigned loop, OpFoldResult from, OpFoldResult to,
                                     int64_t step, ValueRange carried) {
  moveTo(levels.size() - 1);
  auto forOp = scf::ForOp::create(b, valueOf(from), valueOf(to), constant(step), carried);
  if (!levels.back().before)
    levels.back().before = forOp;
  enterLevel(forOp.getBody());
  int64_t stride = loop == vectorDim ? 1 : 0;
  loopIndices[loop] = {forOp.getInductionVar(), {}, stride, unsigned(levels.size() - 1)};
  return forOp;
}

/// In place of a loop of one iteration: what depends on nothing else, as factors of channels, is
/// loaded before all loops. The code behind this one cannot know that no store changes it.
void StageVectorizer::fixIndex(unsigned loop, int64_t index) {
  moveTo(0);
  loopIndices[loop] = {constant(index), {}, loop == vectorDim ? 1 : 0, 0};
}

Value StageVectorizer::valueOf(OpFoldResult bound) {
  return getValueOrCreateConstantIndexOp(b, b.getLoc(), bound);
}

void StageVectorizer::nest(size_t position) {
  if (position == firstReduced && plan.hasReduction()) {
    if (neighbours.empty())
      neighbours.push_back({loopIndices[vectorDim], mask});
    inRun = isOneRun(position);
    storeAccumulators(reduce(position, identities()));
    inRun = false;
    neighbours.clear();
    return;
  }
  if (position == order.size()) {
    for (size_t i = 0; i < neighbours.size(); ++i) {
      enterNeighbour(i);
      emitBody({});
    }
    return;
  }
  unsigned loop = order[position];
  if (loop == vectorDim)
    return vectorLoop(position);
  bool shared = loop == neighbourLoop;
  openLoop(loop, b.getIndexAttr(0), b.getIndexAttr(plan.loops[loop].extent),
           shared ? mostNeighbours : 1);
  if (shared)
    openNeighbours(mostNeighbours, 1);
  nest(position + 1);
  if (shared)
    neighbours.clear();
  leaveLevel();
}

/// Iterations of the neighbours' loop from its index on.
void StageVectorizer::openNeighbours(int64_t count, int64_t step) {
  const Lanes first = loopIndices[neighbourLoop];
  moveTo(first.level);
  for (int64_t i = 0; i < count; ++i) {
    Lanes index = first;
    if (i > 0)
      index.scalar = arith::AddIOp::create(b, first.scalar, constant(i * step));
    neighbours.push_back({index, {}});
  }
}

/// The vector loop in blocks of neighbours, then what is left, with the ragged end.
void StageVectorizer::vectorLoop(size_t position) {
  int64_t extent = plan.loops[vectorDim].extent, vectors = extent / lanes;
  int64_t most = neighbourLoop == vectorDim ? mostNeighbours : 1;
  int64_t whole = vectors / most * most * lanes;
  if (whole == lanes * most) {
    fixIndex(vectorDim, 0);
    vectorBlock(position, most, /*left=*/0);
    forget(0);
  } else if (whole > 0) {
    openLoop(vectorDim, b.getIndexAttr(0), b.getIndexAttr(whole), lanes * most);
    vectorBlock(position, most, /*left=*/0);
    leaveLevel();
  }
  if (whole == extent)
    return;
  openRaggedEnd(whole);
  vectorBlock(position, vectors % most, extent % lanes);
  closeRaggedEnd();
}

/// Vectors from the vector loop's index on, then `left` lanes.
void StageVectorizer::vectorBlock(size_t position, int64_t vectors, int64_t left) {
  if (neighbourLoop == vectorDim)
    openNeighbours(vectors + (left ? 1 : 0), lanes);
  if (left) {
    mask = vector::CreateMaskOp::create(b, vectorType(b.getI1Type()), constant(left));
    if (neighbourLoop == vectorDim)
      neighbours.back().mask = mask;
  }
  nest(position + 1);
  if (neighbourLoop == vectorDim)
    neighbours.clear();
}

/// A level for one copy of the vector loop's body from `whole` on.
void StageVectorizer::openRaggedEnd(int64_t whole) {
  Block *block = levels.back().block;
  moveTo(levels.size() - 1);
  // What this copy hoists goes before the loop above; what it computes, behind it.
  if (!levels.back().before)
    levels.back().before = constant(0).getDefiningOp();
  enterLevel(block);
  moveTo(levels.size() - 1);
  loopIndices[vectorDim] = {constant(whole), {}, 1, unsigned(levels.size() - 1)};
}

void StageVectorizer::closeRaggedEnd() {
  mask = {};
  leaveLevel();
}

void dlc::vectorizeStage(LinalgStage &stage, const StagePlan &plan, unsigned lanes) {
  stage.function = StageVectorizer(stage, plan, lanes).run();
}
