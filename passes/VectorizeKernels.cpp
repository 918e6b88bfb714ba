// A linalg.generic becomes loops, the innermost over vectors. Order of the loops: the items of
// [begin, end), kept loops, reduced loops, the vector loop last among its kind; accumulators are
// values carried by the reduced loops. A ragged end of the vector loop is one masked copy of the
// body. Each op of the body runs in the outermost loop that has all it depends on, on scalars as
// long as it is the same for all lanes.

#include "passes/KernelEmitter.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;

namespace {
/// A value of the body in one vector's iterations.
struct Lanes {
  Value scalar; // of all lanes, or of lane 0 if `stride` is not 0
  Value vector;
  int64_t stride = 0; // of an index over lanes
  unsigned level = 0; // loop it is computed in
  bool isUniform() const { return scalar && stride == 0; }
};

class StageVectorizer {
public:
  StageVectorizer(LinalgStage &stage, const StagePlan &plan, unsigned lanes);
  func::FuncOp run();

private:
  // Loops.
  void openItems();
  void nest(size_t position);
  void vectorLoop(size_t position);
  void openRaggedEnd(int64_t whole);
  void closeRaggedEnd();
  SmallVector<Value> reduce(size_t position, SmallVector<Value> accumulators);
  SmallVector<Value> reduceVector(SmallVector<Value> accumulators);
  SmallVector<Value> reduceLoop(unsigned loop, int64_t to, int64_t step,
                                SmallVector<Value> accumulators,
                                llvm::function_ref<SmallVector<Value>(SmallVector<Value>)> body);
  scf::ForOp openLoop(unsigned loop, int64_t to, int64_t step, ValueRange carried = {});
  void enterLevel(Block *block);
  void leaveLevel();
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, value); }

  // Body.
  SmallVector<Value> emitBody(ArrayRef<Value> accumulators);
  void emitOp(Operation &op);
  Lanes emitApply(affine::AffineApplyOp op);
  Lanes emitElementwise(Operation &op);
  Lanes load(Value memory, ArrayRef<Lanes> indices, const Lanes *inside);
  void store(Value value, Value memory, ArrayRef<Lanes> indices);
  Lanes evaluate(AffineExpr expression, ArrayRef<Lanes> operands);
  SmallVector<Lanes> evaluate(AffineMap map);
  Value vectorOf(const Lanes &lanes);
  Value offsetsOf(MemRefType type, ArrayRef<Lanes> indices);
  unsigned levelOf(Operation &op);
  void moveTo(unsigned level);
  VectorType vectorType(Type element) { return VectorType::get({lanes}, element); }
  Value passThrough(Type element);
  Value memoryOf(Value operand);

  // Results.
  void storeAccumulators(SmallVector<Value> accumulators);
  Value combineLanes(Value value, bool sum);
  SmallVector<Value> identities();

  LinalgStage &stage;
  const StagePlan &plan;
  ImplicitLocOpBuilder b;
  linalg::GenericOp nestOp;
  func::FuncOp function;
  IRMapping arguments;
  int64_t lanes;
  unsigned vectorDim;
  SmallVector<unsigned> order; // inner loops
  size_t firstReduced;
  SmallVector<Lanes> loopIndices;
  Value mask; // of the ragged end, or null
  struct Level {
    Block *block;
    Operation *before; // the loop inside, or null for the block's end
  };
  SmallVector<Level> levels;
  DenseMap<Value, Lanes> values;
};
} // namespace

StageVectorizer::StageVectorizer(LinalgStage &stage, const StagePlan &plan, unsigned most)
    : stage(stage), plan(plan), b(stage.function.getLoc(), stage.function), nestOp(stage.nest),
      vectorDim(plan.loops.size() - 1) {
  lanes = std::min<int64_t>(most, llvm::PowerOf2Ceil(plan.loops.back().extent));
  for (bool reduced : {false, true}) {
    for (auto [i, loop] : llvm::enumerate(plan.loops))
      if (!loop.item && loop.reduced == reduced)
        order.push_back(i);
    if (!reduced)
      firstReduced = order.size();
  }
  loopIndices.resize(plan.loops.size());
}

//===- Loops ----------------------------------------------------------------------------------===//

void StageVectorizer::enterLevel(Block *block) { levels.push_back({block, nullptr}); }

void StageVectorizer::leaveLevel() {
  unsigned closed = levels.size() - 1;
  levels.pop_back();
  SmallVector<Value> gone;
  for (auto &[value, lanes] : values)
    if (lanes.level >= closed)
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
  nest(0);
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

/// A loop from 0 in the innermost level, which becomes the new level.
scf::ForOp StageVectorizer::openLoop(unsigned loop, int64_t to, int64_t step, ValueRange carried) {
  moveTo(levels.size() - 1);
  auto forOp = scf::ForOp::create(b, constant(0), constant(to), constant(step), carried);
  if (!levels.back().before)
    levels.back().before = forOp;
  enterLevel(forOp.getBody());
  int64_t stride = loop == vectorDim ? 1 : 0;
  loopIndices[loop] = {forOp.getInductionVar(), {}, stride, unsigned(levels.size() - 1)};
  return forOp;
}

void StageVectorizer::nest(size_t position) {
  if (position == firstReduced && plan.hasReduction()) {
    storeAccumulators(reduce(position, identities()));
    return;
  }
  if (position == order.size()) {
    emitBody({});
    return;
  }
  if (order[position] == vectorDim)
    return vectorLoop(position);
  openLoop(order[position], plan.loops[order[position]].extent, 1);
  nest(position + 1);
  leaveLevel();
}

void StageVectorizer::vectorLoop(size_t position) {
  int64_t extent = plan.loops[vectorDim].extent, whole = extent / lanes * lanes;
  if (whole > 0) {
    openLoop(vectorDim, whole, lanes);
    nest(position + 1);
    leaveLevel();
  }
  if (whole == extent)
    return;
  openRaggedEnd(whole);
  nest(position + 1);
  closeRaggedEnd();
}

/// A level for one masked copy of the vector loop's body, of the iterations from `whole` on.
void StageVectorizer::openRaggedEnd(int64_t whole) {
  Block *block = levels.back().block;
  moveTo(levels.size() - 1);
  // What this copy hoists goes before the loop above; what it computes, behind it.
  if (!levels.back().before)
    levels.back().before = constant(0).getDefiningOp();
  enterLevel(block);
  moveTo(levels.size() - 1);
  loopIndices[vectorDim] = {constant(whole), {}, 1, unsigned(levels.size() - 1)};
  int64_t left = plan.loops[vectorDim].extent - whole;
  mask = vector::CreateMaskOp::create(b, vectorType(b.getI1Type()), constant(left));
}

void StageVectorizer::closeRaggedEnd() {
  mask = {};
  leaveLevel();
}

SmallVector<Value>
StageVectorizer::reduceLoop(unsigned loop, int64_t to, int64_t step,
                            SmallVector<Value> accumulators,
                            llvm::function_ref<SmallVector<Value>(SmallVector<Value>)> body) {
  scf::ForOp forOp = openLoop(loop, to, step, accumulators);
  SmallVector<Value> next = body(llvm::to_vector_of<Value>(forOp.getRegionIterArgs()));
  b.setInsertionPointToEnd(levels.back().block);
  scf::YieldOp::create(b, next);
  leaveLevel();
  return llvm::to_vector_of<Value>(forOp.getResults());
}

SmallVector<Value> StageVectorizer::reduce(size_t position, SmallVector<Value> accumulators) {
  if (position == order.size())
    return emitBody(accumulators);
  unsigned loop = order[position];
  if (loop == vectorDim)
    return reduceVector(std::move(accumulators));
  return reduceLoop(loop, plan.loops[loop].extent, 1, std::move(accumulators),
                    [&](SmallVector<Value> inner) { return reduce(position + 1, inner); });
}

/// The vector loop as the last of the reduced ones.
SmallVector<Value> StageVectorizer::reduceVector(SmallVector<Value> accumulators) {
  int64_t extent = plan.loops[vectorDim].extent, whole = extent / lanes * lanes;
  if (whole > 0)
    accumulators = reduceLoop(vectorDim, whole, lanes, std::move(accumulators),
                              [&](SmallVector<Value> inner) { return emitBody(inner); });
  if (whole == extent)
    return accumulators;
  openRaggedEnd(whole);
  accumulators = emitBody(accumulators);
  closeRaggedEnd();
  return accumulators;
}

//===- Body -----------------------------------------------------------------------------------===//

void StageVectorizer::moveTo(unsigned level) {
  const Level &at = levels[level];
  if (at.before)
    return b.setInsertionPoint(at.before);
  if (at.block->mightHaveTerminator())
    return b.setInsertionPoint(at.block->getTerminator());
  b.setInsertionPointToEnd(at.block);
}

SmallVector<Value> StageVectorizer::emitBody(ArrayRef<Value> accumulators) {
  Block &body = nestOp.getRegion().front();
  unsigned inputs = nestOp.getNumDpsInputs(), innermost = levels.size() - 1;
  for (auto [operand, argument] : llvm::zip(nestOp->getOpOperands(), body.getArguments())) {
    if (argument.use_empty() || argument.getArgNumber() >= inputs || values.contains(argument))
      continue;
    SmallVector<Lanes> indices = evaluate(nestOp.getMatchingIndexingMap(&operand));
    unsigned level = 0;
    for (const Lanes &index : indices)
      level = std::max(level, index.level);
    moveTo(level);
    Lanes value = load(memoryOf(operand.get()), indices, nullptr);
    value.level = level;
    values[argument] = value;
  }
  unsigned next = 0;
  for (auto [i, write] : llvm::enumerate(plan.writes))
    if (write.reduction)
      values[body.getArgument(inputs + i)] = {{}, accumulators[next++], 0, innermost};
  for (Operation &op : body.without_terminator())
    emitOp(op);
  moveTo(innermost);
  SmallVector<Value> results;
  for (auto [i, write] : llvm::enumerate(plan.writes)) {
    Value value = vectorOf(values.lookup(body.getTerminator()->getOperand(i)));
    if (write.reduction) {
      if (mask)
        value = arith::SelectOp::create(b, mask, value, accumulators[results.size()]);
      results.push_back(value);
      continue;
    }
    OpOperand *out = nestOp.getDpsInitOperand(i);
    store(value, memoryOf(out->get()), evaluate(nestOp.getMatchingIndexingMap(out)));
  }
  for (BlockArgument argument : body.getArguments().drop_front(inputs))
    values.erase(argument);
  return results;
}

unsigned StageVectorizer::levelOf(Operation &op) {
  unsigned level = 0;
  op.walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (auto known = values.find(operand); known != values.end())
        level = std::max(level, known->second.level);
  });
  return level;
}

void StageVectorizer::emitOp(Operation &op) {
  if (values.contains(op.getResult(0)))
    return;
  unsigned level = levelOf(op);
  moveTo(level);
  Lanes result = TypeSwitch<Operation *, Lanes>(&op)
                     .Case([&](linalg::IndexOp index) { return loopIndices[index.getDim()]; })
                     .Case([&](affine::AffineApplyOp apply) { return emitApply(apply); })
                     .Case([&](memref::LoadOp loadOp) {
                       return load(memoryOf(loadOp.getMemRef()),
                                   {values.lookup(loadOp.getIndices()[0])}, nullptr);
                     })
                     .Case([&](scf::IfOp guarded) {
                       auto loadOp = cast<memref::LoadOp>(guarded.thenBlock()->front());
                       Lanes inside = values.lookup(guarded.getCondition());
                       return load(memoryOf(loadOp.getMemRef()),
                                   {values.lookup(loadOp.getIndices()[0])}, &inside);
                     })
                     .Default([&](Operation *other) { return emitElementwise(*other); });
  result.level =
      isa<linalg::IndexOp>(op) ? loopIndices[cast<linalg::IndexOp>(op).getDim()].level : level;
  values[op.getResult(0)] = result;
}

Lanes StageVectorizer::emitElementwise(Operation &op) {
  bool uniform = llvm::all_of(op.getOperands(),
                              [&](Value operand) { return values.lookup(operand).isUniform(); });
  IRMapping mapping;
  for (Value operand : op.getOperands()) {
    Lanes lanes = values.lookup(operand);
    mapping.map(operand, uniform ? lanes.scalar : vectorOf(lanes));
  }
  Operation *clone = b.clone(op, mapping);
  if (uniform)
    return {clone->getResult(0), {}};
  clone->getResult(0).setType(vectorType(op.getResult(0).getType()));
  return {{}, clone->getResult(0)};
}

Value StageVectorizer::vectorOf(const Lanes &value) {
  if (value.vector)
    return value.vector;
  Value splat = vector::BroadcastOp::create(b, vectorType(value.scalar.getType()), value.scalar);
  if (value.stride == 0)
    return splat;
  VectorType type = vectorType(b.getIndexType());
  Value steps = vector::StepOp::create(b, type);
  Value stride = vector::BroadcastOp::create(b, type, constant(value.stride));
  return arith::AddIOp::create(b, splat, arith::MulIOp::create(b, steps, stride));
}

//===- Indices --------------------------------------------------------------------------------===//

/// Factor of the lanes in an expression, if it is linear in them.
static std::optional<int64_t> strideOf(AffineExpr expression, ArrayRef<Lanes> operands) {
  if (auto dim = dyn_cast<AffineDimExpr>(expression))
    return operands[dim.getPosition()].vector ? std::nullopt
                                              : std::optional(operands[dim.getPosition()].stride);
  if (isa<AffineConstantExpr>(expression))
    return 0;
  auto binary = cast<AffineBinaryOpExpr>(expression);
  std::optional<int64_t> left = strideOf(binary.getLHS(), operands),
                         right = strideOf(binary.getRHS(), operands);
  if (!left || !right)
    return std::nullopt;
  if (expression.getKind() == AffineExprKind::Add)
    return *left + *right;
  if (*left == 0)
    return 0;
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (expression.getKind() == AffineExprKind::Mul && factor)
    return *left * factor.getValue();
  return std::nullopt;
}

Lanes StageVectorizer::evaluate(AffineExpr expression, ArrayRef<Lanes> operands) {
  Lanes result;
  for (auto [i, operand] : llvm::enumerate(operands))
    if (expression.isFunctionOfDim(i))
      result.level = std::max(result.level, operand.level);
  if (std::optional<int64_t> stride = strideOf(expression, operands)) {
    SmallVector<Value> scalars;
    for (const Lanes &operand : operands)
      scalars.push_back(operand.scalar ? operand.scalar : constant(0));
    AffineMap map = AffineMap::get(operands.size(), 0, expression);
    affine::canonicalizeMapAndOperands(&map, &scalars);
    result.scalar = affine::AffineApplyOp::create(b, map, scalars);
    result.stride = *stride;
    return result;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expression))
    return operands[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expression);
  Value left = vectorOf(evaluate(binary.getLHS(), operands));
  Value right = vectorOf(evaluate(binary.getRHS(), operands));
  switch (expression.getKind()) {
  case AffineExprKind::Add:
    result.vector = arith::AddIOp::create(b, left, right);
    break;
  case AffineExprKind::Mul:
    result.vector = arith::MulIOp::create(b, left, right);
    break;
  case AffineExprKind::FloorDiv: // Negative coordinates are masked out.
    result.vector = arith::DivUIOp::create(b, left, right);
    break;
  default:
    result.vector = arith::RemUIOp::create(b, left, right);
  }
  return result;
}

Lanes StageVectorizer::emitApply(affine::AffineApplyOp op) {
  SmallVector<Lanes> operands;
  for (Value operand : op.getMapOperands())
    operands.push_back(values.lookup(operand));
  return evaluate(op.getAffineMap().getResult(0), operands);
}

SmallVector<Lanes> StageVectorizer::evaluate(AffineMap map) {
  SmallVector<Lanes> indices;
  for (AffineExpr result : map.getResults()) {
    unsigned level = 0;
    for (auto [i, index] : llvm::enumerate(loopIndices))
      if (result.isFunctionOfDim(i))
        level = std::max(level, index.level);
    moveTo(level);
    // Other loops may not be open yet.
    SmallVector<Lanes> operands(loopIndices);
    for (auto [i, operand] : llvm::enumerate(operands))
      if (!result.isFunctionOfDim(i))
        operand = {constant(0), {}};
    indices.push_back(evaluate(result, operands));
  }
  return indices;
}

//===- Memory ---------------------------------------------------------------------------------===//

Value StageVectorizer::passThrough(Type element) {
  return arith::ConstantOp::create(b, b.getZeroAttr(vectorType(element)));
}

/// The argument that an operand of the generic is, or is a part of; or a constant's table.
Value StageVectorizer::memoryOf(Value operand) {
  if (auto part = operand.getDefiningOp<memref::SubViewOp>())
    operand = part.getSource();
  if (operand.getDefiningOp<memref::GetGlobalOp>() && !arguments.contains(operand)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.front());
    b.clone(*operand.getDefiningOp(), arguments);
  }
  return arguments.lookup(operand);
}

/// Distances of the lanes' elements from lane 0's.
Value StageVectorizer::offsetsOf(MemRefType type, ArrayRef<Lanes> indices) {
  int64_t distance = 1, stride = 0;
  for (size_t i = indices.size(); i-- > 0;) {
    stride += indices[i].stride * distance;
    distance *= type.getDimSize(i);
  }
  return vectorOf({constant(0), {}, stride});
}

static bool isContiguous(ArrayRef<Lanes> indices) {
  return !indices.empty() && indices.back().stride == 1 && indices.back().scalar &&
         llvm::all_of(indices.drop_back(), [](const Lanes &index) { return index.isUniform(); });
}

Lanes StageVectorizer::load(Value memory, ArrayRef<Lanes> indices, const Lanes *inside) {
  auto type = cast<MemRefType>(memory.getType());
  SmallVector<Value> scalars;
  for (const Lanes &index : indices)
    scalars.push_back(index.scalar ? index.scalar : constant(0));
  bool uniform = llvm::all_of(indices, [](const Lanes &index) { return index.isUniform(); });
  if (uniform && (!inside || inside->isUniform())) {
    if (!inside)
      return {memref::LoadOp::create(b, memory, scalars), {}};
    auto guarded = scf::IfOp::create(
        b, inside->scalar,
        [&](OpBuilder &nested, Location loc) {
          Value loaded = memref::LoadOp::create(nested, loc, memory, scalars);
          scf::YieldOp::create(nested, loc, loaded);
        },
        [&](OpBuilder &nested, Location loc) {
          Value zero =
              arith::ConstantOp::create(nested, loc, nested.getZeroAttr(type.getElementType()));
          scf::YieldOp::create(nested, loc, zero);
        });
    return {guarded.getResult(0), {}};
  }
  Value where = mask;
  if (inside)
    where =
        mask ? arith::AndIOp::create(b, mask, vectorOf(*inside)).getResult() : vectorOf(*inside);
  VectorType result = vectorType(type.getElementType());
  if (isContiguous(indices)) {
    if (!where)
      return {{}, vector::LoadOp::create(b, result, memory, scalars)};
    return {{},
            vector::MaskedLoadOp::create(b, result, memory, scalars, where,
                                         passThrough(type.getElementType()))};
  }
  if (!where)
    where = arith::ConstantOp::create(b, DenseElementsAttr::get(vectorType(b.getI1Type()), true));
  Value offsets = indices.back().vector ? indices.back().vector : offsetsOf(type, indices);
  return {{},
          vector::GatherOp::create(b, result, memory, scalars, offsets, where,
                                   passThrough(type.getElementType()))};
}

void StageVectorizer::store(Value value, Value memory, ArrayRef<Lanes> indices) {
  moveTo(levels.size() - 1);
  SmallVector<Value> scalars;
  for (const Lanes &index : indices)
    scalars.push_back(index.scalar);
  if (lanes == 1) {
    memref::StoreOp::create(b, vector::ExtractOp::create(b, value, ArrayRef<int64_t>{0}), memory,
                            scalars);
    return;
  }
  if (isContiguous(indices)) {
    if (mask)
      vector::MaskedStoreOp::create(b, memory, scalars, mask, value);
    else
      vector::StoreOp::create(b, value, memory, scalars);
    return;
  }
  Value where = mask;
  if (!where)
    where = arith::ConstantOp::create(b, DenseElementsAttr::get(vectorType(b.getI1Type()), true));
  vector::ScatterOp::create(b, Type(), memory, scalars,
                            offsetsOf(cast<MemRefType>(memory.getType()), indices), where, value);
}

//===- Accumulators ---------------------------------------------------------------------------===//

SmallVector<Value> StageVectorizer::identities() {
  moveTo(levels.size() - 1);
  SmallVector<Value> result;
  for (const ClusterWrite &write : plan.writes) {
    if (!write.reduction)
      continue;
    Type type = accumulatorType(write.reduction);
    double identity =
        isa<nn::ReduceSumOp>(write.reduction) ? 0.0 : -std::numeric_limits<double>::infinity();
    result.push_back(
        vector::BroadcastOp::create(b, vectorType(type), emitConstant(b, type, identity)));
  }
  return result;
}

/// One value of all lanes: halves are combined until one lane is left, since a chain of additions
/// would wait for each.
Value StageVectorizer::combineLanes(Value value, bool sum) {
  for (int64_t left = lanes; left > 1;) {
    left /= 2;
    Value low = vector::ExtractStridedSliceOp::create(b, value, 0, left, 1);
    Value high = vector::ExtractStridedSliceOp::create(b, value, left, left, 1);
    value = sum ? arith::AddFOp::create(b, low, high).getResult()
                : arith::MaximumFOp::create(b, low, high).getResult();
  }
  return vector::ExtractOp::create(b, value, ArrayRef<int64_t>{0});
}

/// Rounds accumulators once and writes them; lanes that were reduced over are combined.
void StageVectorizer::storeAccumulators(SmallVector<Value> accumulators) {
  levels.back().before = nullptr;
  SmallVector<unsigned> buffers = stageBuffers(plan);
  unsigned next = 0;
  for (auto [i, write] : llvm::enumerate(plan.writes)) {
    if (!write.reduction)
      continue;
    moveTo(levels.size() - 1);
    Value value = accumulators[next++];
    bool acrossLanes = plan.loops[vectorDim].reduced;
    if (acrossLanes)
      value = combineLanes(value, isa<nn::ReduceSumOp>(write.reduction));
    OpOperand *out = nestOp.getDpsInitOperand(i);
    unsigned position = llvm::find(buffers, write.buffer) - buffers.begin();
    Value memory = function.getArgument(position);
    Type element = cast<MemRefType>(memory.getType()).getElementType();
    if (element != accumulatorType(write.reduction))
      value = emitResize(b, value, acrossLanes ? element : Type(vectorType(element)));
    SmallVector<Lanes> indices = evaluate(nestOp.getMatchingIndexingMap(out));
    moveTo(levels.size() - 1);
    if (!acrossLanes) {
      store(value, memory, indices);
      continue;
    }
    SmallVector<Value> scalars;
    for (const Lanes &index : indices)
      scalars.push_back(index.scalar);
    memref::StoreOp::create(b, value, memory, scalars);
  }
}

void dlc::vectorizeStage(LinalgStage &stage, const StagePlan &plan, unsigned lanes) {
  stage.function = StageVectorizer(stage, plan, lanes).run();
}
