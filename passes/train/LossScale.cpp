#include "passes/train/LossScale.h"

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

static Value constant(ImplicitLocOpBuilder &b, RankedTensorType type, double value) {
  return splat(b, b.getLoc(), type, value);
}

static Value scalar(ImplicitLocOpBuilder &b, double value) {
  return constant(b, RankedTensorType::get({}, b.getF32Type()), value);
}

static Value broadcast(ImplicitLocOpBuilder &b, RankedTensorType like, Value scalar) {
  RankedTensorType type = like.clone(tensorType(scalar).getElementType());
  return scalar.getType() == type
             ? scalar
             : BroadcastOp::create(b, type, scalar, ArrayRef<int64_t>()).getResult();
}

static Value compare(ImplicitLocOpBuilder &b, Comparison predicate, Value x, double bound) {
  return CompareOp::create(b, predicate, x, constant(b, tensorType(x), bound));
}

Value LossScale::select(Value condition, Value yes, Value no) {
  return SelectOp::create(b, yes.getType(), broadcast(b, tensorType(yes), condition), yes, no);
}

void LossScale::unscale(ArrayRef<GradientOp> gradients) {
  Value inverse = DivOp::create(b, scalar(b, 1), scale);
  SmallVector<Value> sums = llvm::map_to_vector(
      gradients, [](GradientOp gradient) -> Value { return gradient.getValue(); });
  Value wild = CountNonfiniteOp::create(b, inverse.getType(), sums, inverse);
  isFinite = compare(b, Comparison::EQ, wild, 0);
  for (GradientOp gradient : gradients) {
    stamp.role.variable = gradient.getVariableAttr();
    Value sum = gradient.getValue();
    gradient.getValueMutable().assign(
        MulOp::create(b, sum, broadcast(b, tensorType(sum), inverse)));
  }
  stamp.role.variable = {};
  for (GradientOp gradient : gradients.drop_back())
    gradient->moveBefore(gradients.back());
}

void LossScale::updateState() {
  Value zero = scalar(b, 0), one = scalar(b, 1);
  Value steps = AddOp::create(b, readState(b, b.getLoc(), model, goodName), one);
  Value isGrown = compare(b, Comparison::GE, steps, growthInterval);
  Value larger = MinOp::create(b, MulOp::create(b, scale, scalar(b, 2)), scalar(b, greatestScale));
  Value smaller = MaxOp::create(b, MulOp::create(b, scale, scalar(b, 0.5)), scalar(b, leastScale));
  Value skipped = readSkipped(b, b.getLoc(), model);
  AssignOp::create(b, scaleName, select(isFinite, select(isGrown, larger, scale), smaller));
  AssignOp::create(b, goodName, select(isFinite, select(isGrown, zero, steps), zero));
  AssignOp::create(b, skippedName, AddOp::create(b, skipped, select(isFinite, zero, one)));
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
    assign.getValueMutable().assign(select(isFinite, assign.getValue(), old));
  }
}
