#include "passes/codegen/cpu/vectorize/BodyVectorizer.h"
#include "passes/codegen/EmitRandom.h"
#include "passes/codegen/cpu/vectorize/LaneIndices.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;

SmallVector<Value> BodyVectorizer::emit(size_t copy, ArrayRef<Value> accumulators) {
  Block &body = generic.getRegion().front();
  unsigned inputs = generic.getNumDpsInputs(), next = 0;
  if (copy == 0)
    randomBits.clear();
  loadInputs();
  for (auto [i, write] : llvm::enumerate(plan.stage.writes))
    if (write.reduction)
      nest.remember(body.getArgument(inputs + i), {{}, accumulators[next++], 0, nest.innermost()});
  for (Operation &op : body.without_terminator())
    if (!plan.sums.replace(&op))
      emitOp(op, copy);
  nest.moveToInnermost();
  SmallVector<Value> results;
  for (auto [i, write] : llvm::enumerate(plan.stage.writes)) {
    if (write.reduction)
      results.push_back(accumulate(i, results.size(), accumulators[results.size()]));
    else
      storeResult(i);
  }
  for (BlockArgument argument : body.getArguments().drop_front(inputs))
    nest.forget(argument);
  return results;
}

void BodyVectorizer::loadInputs() {
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    BlockArgument argument = generic.getMatchingBlockArgument(operand);
    if (argument.use_empty() || nest.isKnown(argument))
      continue;
    SmallVector<Lanes> indices = evaluate(nest, generic.getMatchingIndexingMap(operand));
    unsigned level = 0;
    for (const Lanes &index : indices)
      level = std::max(level, index.level);
    nest.moveTo(level);
    Lanes value = memory.load(memory.of(operand->get()), indices);
    value.level = level;
    nest.remember(argument, value);
  }
}

//===- Ops ------------------------------------------------------------------------------------===//

unsigned BodyVectorizer::levelOf(Operation &op) const {
  unsigned level = 0;
  op.walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      level = std::max(level, nest.lookup(operand).level);
  });
  return level;
}

void BodyVectorizer::emitOp(Operation &op, size_t copy) {
  if (nest.isKnown(op.getResult(0)))
    return;
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return nest.remember(index, nest.index(index.getDim()));
  unsigned level = levelOf(op);
  nest.moveTo(level);
  Lanes result = TypeSwitch<Operation *, Lanes>(&op)
                     .Case([&](affine::AffineApplyOp apply) { return emitApply(apply); })
                     .Case([&](memref::LoadOp load) { return emitLoad(load); })
                     .Case([&](scf::IfOp guarded) {
                       auto load = cast<memref::LoadOp>(guarded.thenBlock()->front());
                       Lanes inside = nest.lookup(guarded.getCondition());
                       return emitLoad(load, &inside);
                     })
                     .Case([&](func::CallOp random) { return emitRandom(random, copy); })
                     .Default([&](Operation *other) { return emitElementwise(*other); });
  result.level = level;
  nest.remember(op.getResult(0), result);
}

Lanes BodyVectorizer::emitApply(affine::AffineApplyOp op) {
  SmallVector<Lanes> operands;
  for (Value operand : op.getMapOperands())
    operands.push_back(nest.lookup(operand));
  return evaluate(nest, op.getAffineMap().getResult(0), operands);
}

Lanes BodyVectorizer::emitLoad(memref::LoadOp op, const Lanes *inside) {
  return memory.load(memory.of(op.getMemRef()), {nest.lookup(op.getIndices()[0])}, inside);
}

Lanes BodyVectorizer::emitElementwise(Operation &op) {
  bool uniform = llvm::all_of(op.getOperands(),
                              [&](Value operand) { return nest.lookup(operand).isUniform(); });
  IRMapping mapping;
  for (Value operand : op.getOperands()) {
    Lanes lanes = nest.lookup(operand);
    mapping.map(operand, uniform ? lanes.scalar : nest.vectorOf(lanes));
  }
  Operation *clone = b.clone(op, mapping);
  if (uniform)
    return {clone->getResult(0), {}};
  clone->getResult(0).setType(nest.vectorType(op.getResult(0).getType()));
  return {{}, clone->getResult(0)};
}

/// 32 random bits of each lane. Jammed iterations may take theirs from what the first one computes.
Lanes BodyVectorizer::emitRandom(func::CallOp op, size_t copy) {
  auto scalar = [&](unsigned i) { return nest.lookup(op.getOperand(i)).scalar; };
  RandomStream random{scalar(0), scalar(1), scalar(2)};
  Lanes index = nest.lookup(op.getOperand(4));
  auto elementAt = [&](Value position, Value first) {
    Type type = first.getType();
    return arith::AddIOp::create(b, first, arith::IndexCastOp::create(b, type, position));
  };
  if (index.isUniform())
    return {emitRandomBits(b, random, elementAt(index.scalar, scalar(3))), {}};
  VectorType type = nest.vectorType(b.getI64Type());
  auto elements = [&]() -> Value {
    Value first = vector::BroadcastOp::create(b, type, scalar(3));
    return elementAt(nest.vectorOf(index), first);
  };
  if (!plan.unrolling.sharesRandom)
    return {{}, emitRandomBits(b, random, elements())};
  SmallVector<Value> &bits = randomBits[op];
  bool alongLanes = plan.unrolling.jammedLoop == nest.vectorLoop();
  if (bits.empty() && alongLanes)
    bits = emitRandomRun(b, random, elementAt(index.scalar, scalar(3)), nest.lanes());
  if (bits.empty()) {
    Value two = arith::ConstantOp::create(b, DenseElementsAttr::get(type, b.getI64IntegerAttr(2)));
    for (Value word : emitPhilox(b, random, arith::ShRUIOp::create(b, elements(), two)))
      bits.push_back(emitLowHalf(b, word));
  }
  return {{}, bits[copy]};
}

//===- Results --------------------------------------------------------------------------------===//

Value BodyVectorizer::result(unsigned write) {
  Operation *terminator = generic.getRegion().front().getTerminator();
  return nest.vectorOf(nest.lookup(terminator->getOperand(write)));
}

/// The accumulator after this copy, in lanes that exist.
Value BodyVectorizer::accumulate(unsigned write, size_t reduction, Value accumulator) {
  Value sum = plan.sums.empty() ? result(write) : addTerm(plan.sums[reduction], accumulator);
  return nest.mask() ? arith::SelectOp::create(b, nest.mask(), sum, accumulator).getResult() : sum;
}

/// An f32 accumulator and a sum's term; a product is not rounded.
Value BodyVectorizer::addTerm(const SumTerm &term, Value accumulator) {
  Value value = nest.vectorOf(nest.lookup(term.value)), sum;
  if (term.factor)
    sum = math::FmaOp::create(b, value, nest.vectorOf(nest.lookup(term.factor)), accumulator);
  else
    sum = arith::AddFOp::create(b, accumulator, value);
  if (!term.inside)
    return sum;
  return arith::SelectOp::create(b, nest.vectorOf(nest.lookup(term.inside)), sum, accumulator);
}

void BodyVectorizer::storeResult(unsigned write) {
  const ClusterWrite &planned = plan.stage.writes[write];
  OpOperand *out = generic.getDpsInitOperand(write);
  Value value = result(write);
  bool nonTemporal = planned.nonTemporal && fillsLines(plan.stage, planned, nest.lanes());
  Value target = memory.of(out->get());
  memory.store(value, target, evaluate(nest, generic.getMatchingIndexingMap(out)), nonTemporal);
}
