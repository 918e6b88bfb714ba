#include "passes/train/LossScale.h"

#include "passes/train/Arithmetic.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

// GradScaler's defaults.
static constexpr double initialScale = 0x1.0p16, growthInterval = 2000;
// It bounds nothing; here the factor and its inverse stay normal numbers.
static constexpr double leastScale = 0x1.0p-126, greatestScale = 0x1.0p126;

static constexpr llvm::StringLiteral scaleName = "optimizer.loss_scale",
                                     goodName = "optimizer.good_steps",
                                     skippedName = "optimizer.skipped_steps";

/// The state's value at the step's start; creates the variable.
static Value readState(OpBuilder &builder, Location loc, ModelOp model, StringRef name) {
  auto type = RankedTensorType::get({}, builder.getF32Type());
  if (!SymbolTable::lookupSymbolIn(model, name)) {
    OpBuilder atTop = OpBuilder::atBlockBegin(&model.getBody().front());
    auto initial = InitializerAttr::get(builder.getContext(), InitializerKind::Constant,
                                        name == scaleName ? initialScale : 0, 0);
    VariableOp::create(atTop, model.getLoc(), name, type, VariableKind::Slot, initial,
                       FlatSymbolRefAttr(), builder.getStringAttr(name.split('.').second));
  }
  return ReadOp::create(builder, loc, type, name);
}

bool LossScale::isNeeded(ModelOp model) {
  auto precision = model->getAttrOfType<StringAttr>("precision");
  return precision && precision.getValue() == "f16";
}

Value LossScale::read(OpBuilder &builder, Location loc, ModelOp model) {
  return readState(builder, loc, model, scaleName);
}

Value LossScale::readSkipped(OpBuilder &builder, Location loc, ModelOp model) {
  return readState(builder, loc, model, skippedName);
}

LossScale::LossScale(ModelOp model, ArrayRef<GradientOp> gradients)
    : model(model), stamp({Phase::Update}),
      b(NameLoc::get(StringAttr::get(model.getContext(), "loss_scale"), model.getLoc()),
        gradients.back()) {
  b.setListener(&stamp);
  scale = read(b, b.getLoc(), model);
  unscale(gradients);
  updateState();
}

/// `yes` or `no` as a scalar says.
static Value select(ImplicitLocOpBuilder &b, Value condition, Value yes, Value no) {
  Arithmetic m(b, tensorType(yes).clone(b.getI1Type()));
  return SelectOp::create(b, yes.getType(), m.broadcast(condition), yes, no);
}

void LossScale::unscale(ArrayRef<GradientOp> gradients) {
  Arithmetic scalar(b, tensorType(scale));
  Value inverse = scalar.div(scalar.constant(1), scale);
  SmallVector<Value> sums = llvm::map_to_vector(
      gradients, [](GradientOp gradient) -> Value { return gradient.getValue(); });
  Value wild = CountNonfiniteOp::create(b, inverse.getType(), sums, inverse);
  isFinite = scalar.compare(Comparison::EQ, wild, 0);
  for (GradientOp gradient : gradients) {
    stamp.role.variable = gradient.getVariableAttr();
    Value sum = gradient.getValue();
    Arithmetic m(b, tensorType(sum));
    gradient.getValueMutable().assign(m.mul(sum, m.broadcast(inverse)));
  }
  stamp.role.variable = {};
  for (GradientOp gradient : gradients.drop_back())
    gradient->moveBefore(gradients.back());
}

void LossScale::updateState() {
  Arithmetic m(b, tensorType(scale));
  Value zero = m.constant(0), one = m.constant(1);
  Value steps = m.add(readState(b, b.getLoc(), model, goodName), one);
  Value isGrown = m.compare(Comparison::GE, steps, growthInterval);
  Value larger = m.min(m.scale(scale, 2), m.constant(greatestScale));
  Value smaller = m.max(m.scale(scale, 0.5), m.constant(leastScale));
  Value skipped = readSkipped(b, b.getLoc(), model);
  auto ifFinite = [&](Value yes, Value no) { return select(b, isFinite, yes, no); };
  AssignOp::create(b, scaleName, ifFinite(select(b, isGrown, larger, scale), smaller));
  AssignOp::create(b, goodName, ifFinite(select(b, isGrown, zero, steps), zero));
  AssignOp::create(b, skippedName, m.add(skipped, ifFinite(zero, one)));
}

void LossScale::guardAssignments() {
  Block &block = trainProgram(model).getBody().front();
  for (AssignOp assign : llvm::to_vector(block.getOps<AssignOp>())) {
    StringRef name = assign.getVariable();
    if (llvm::is_contained({scaleName, goodName, skippedName}, name))
      continue;
    // Running statistics are assigned where the network computes them.
    if (assign->isBeforeInBlock(isFinite.getDefiningOp()))
      assign->moveAfter(&block.back());
    b.setInsertionPoint(assign);
    b.setLoc(assign.getLoc());
    stamp.role = roleOf(assign);
    Value old = ReadOp::create(b, assign.getValue().getType(), name);
    assign.getValueMutable().assign(select(b, isFinite, assign.getValue(), old));
  }
}
