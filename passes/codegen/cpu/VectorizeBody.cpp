// The body of a stage on vectors: each op runs in the outermost loop that has all it depends on, on
// scalars as long as it is the same for all lanes. Lanes that lie one after the other are one load
// or store, others are gathered and scattered.

#include "passes/codegen/cpu/StageVectorizer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;

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
    if (terms.empty() || !replaced.contains(&op))
      emitOp(op);
  moveTo(innermost);
  SmallVector<Value> results;
  for (auto [i, write] : llvm::enumerate(plan.writes)) {
    Value value = write.reduction && !terms.empty()
                      ? addTerm(results.size(), accumulators[results.size()])
                      : vectorOf(values.lookup(body.getTerminator()->getOperand(i)));
    if (write.reduction) {
      if (mask)
        value = arith::SelectOp::create(b, mask, value, accumulators[results.size()]);
      results.push_back(value);
      continue;
    }
    OpOperand *out = nestOp.getDpsInitOperand(i);
    store(value, memoryOf(out->get()), evaluate(nestOp.getMatchingIndexingMap(out)),
          write.streams && fillsLines(plan, write, lanes));
  }
  for (BlockArgument argument : body.getArguments().drop_front(inputs))
    values.erase(argument);
  return results;
}

/// An f32 accumulator and a sum's term; a product is not rounded.
Value StageVectorizer::addTerm(size_t reduction, Value accumulator) {
  const Term &term = terms[reduction];
  Value value = vectorOf(values.lookup(term.value)), sum;
  if (term.factor)
    sum = math::FmaOp::create(b, value, vectorOf(values.lookup(term.factor)), accumulator);
  else
    sum = arith::AddFOp::create(b, accumulator, value);
  if (!term.inside)
    return sum;
  return arith::SelectOp::create(b, vectorOf(values.lookup(term.inside)), sum, accumulator);
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
                     .Case([&](func::CallOp random) { return emitRandom(random); })
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

/// 32 random bits of each lane. Neighbours take theirs from what the first of them computes.
Lanes StageVectorizer::emitRandom(func::CallOp op) {
  auto scalar = [&](unsigned i) { return values.lookup(op.getOperand(i)).scalar; };
  RandomStream random{scalar(0), scalar(1), scalar(2)};
  Lanes index = values.lookup(op.getOperand(4));
  auto elementAt = [&](Value position, Value first) {
    Type type = first.getType();
    return arith::AddIOp::create(b, first, arith::IndexCastOp::create(b, type, position));
  };
  if (index.isUniform())
    return {emitRandomBits(b, random, elementAt(index.scalar, scalar(3))), {}};
  bool alongLanes = neighbourLoop == vectorDim;
  auto elements = [&]() -> Value {
    Value first = vector::BroadcastOp::create(b, vectorType(b.getI64Type()), scalar(3));
    return elementAt(vectorOf(index), first);
  };
  if (!sharesRandom)
    return {{}, emitRandomBits(b, random, elements())};
  SmallVector<Value> &bits = randomBits[op];
  if (bits.empty() && alongLanes)
    bits = emitRandomRun(b, random, elementAt(index.scalar, scalar(3)), lanes);
  if (bits.empty()) {
    Value two = arith::ConstantOp::create(
        b, DenseElementsAttr::get(vectorType(b.getI64Type()), b.getI64IntegerAttr(2)));
    for (Value word : emitPhilox(b, random, arith::ShRUIOp::create(b, elements(), two)))
      bits.push_back(emitLowHalf(b, word));
  }
  return {{}, bits[neighbour]};
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

bool dlc::fillsLines(const StagePlan &plan, const ClusterWrite &write, int64_t lanes) {
  bool aligned = write.address.offset % lanes == 0;
  for (auto [loop, weight] : llvm::enumerate(write.address.weights))
    aligned &= loop + 1 == plan.loops.size() ? weight == 1 : weight % lanes == 0;
  if (!aligned || plan.loops.back().extent % lanes != 0)
    return false;
  int64_t filled = 1, line = 64 / nn::elementBytes(write.element);
  for (bool grows = true; grows && filled < line;) {
    grows = false;
    for (auto [loop, weight] : llvm::zip(plan.loops, write.address.weights))
      if (!grows && weight == filled && loop.extent > 1) {
        filled *= loop.extent;
        grows = true;
      }
  }
  return filled >= line;
}

void StageVectorizer::store(Value value, Value memory, ArrayRef<Lanes> indices, bool streams) {
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
    auto type = cast<VectorType>(value.getType());
    if (mask)
      vector::MaskedStoreOp::create(b, memory, scalars, mask, value);
    else if (streams)
      vector::StoreOp::create(b, value, memory, scalars, /*nontemporal=*/true,
                              llvm::Align(lanes * type.getElementTypeBitWidth() / 8));
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
