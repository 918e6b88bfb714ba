// dlc-differentiate: reverse-mode differentiation of @train.
//
// A forward walk marks the values that depend on a parameter. A reverse walk starts from the losses
// and asks each op that has a gradient for those of its marked operands; a value used several times
// has the sum of what its users contribute. So a gradient is built only if a parameter needs it.
// Invariant: when the reverse walk reaches an op, the gradients of its results are complete, since
// all users lie behind it.

#include "dialects/NN/Elementwise.h"
#include "dialects/NN/ParameterPatterns.h"
#include "dialects/NN/Role.h"
#include "passes/Passes.h"
#include "passes/train/LossScale.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
class DifferentiatePass : public dlc::impl::DifferentiateBase<DifferentiatePass> {
public:
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::NN)))
      return signalPassFailure();
    ModelOp model = getOperation();
    model.setStage("train");
    ProgramOp train = trainProgram(model);
    if (!train)
      return;
    auto settings = model->getAttrOfType<DictionaryAttr>("train");
    auto freeze = settings ? settings.getAs<ArrayAttr>("freeze") : ArrayAttr();
    FailureOr<ParameterPatterns> patterns = ParameterPatterns::create(
        model, "the setting freeze's", freeze ? freeze.getValue() : ArrayRef<Attribute>());
    if (failed(patterns))
      return signalPassFailure();
    frozen = std::move(*patterns);
    Block &body = train.getBody().front();
    OpBuilder builder = OpBuilder::atBlockEnd(&body);
    builder.setListener(&stamp);
    SmallVector<Operation *> forward = llvm::map_to_vector(body, [](Operation &op) { return &op; });
    markLosses(forward);
    markDependants(model, forward);
    seedLosses(builder, model, train);
    for (Operation *op : llvm::reverse(forward))
      if (failed(propagate(builder, op)))
        return signalPassFailure();
    emitGradients(builder, model, forward);
  }

private:
  bool isTrained(VariableOp variable) const {
    auto trainable = variable->getAttrOfType<BoolAttr>("trainable");
    return variable.getKind() == VariableKind::Parameter && (!trainable || trainable.getValue()) &&
           !frozen.match(variable.getSymName());
  }

  /// Gives the layer kind of a loss to arithmetic that only losses and metrics read.
  static void markLosses(ArrayRef<Operation *> forward) {
    for (Operation *op : llvm::reverse(forward)) {
      bool isArithmetic =
          op->hasTrait<Elementwise>() || isa<ReductionOpInterface, SoftmaxCrossEntropyOp>(op);
      if (isArithmetic && !op->use_empty() && llvm::all_of(op->getUsers(), [](Operation *user) {
            return isa<LossOp, MetricOp>(user) || roleOf(user).kind == LayerKind::Loss;
          }))
        setRole(op, {Phase::Forward, LayerKind::Loss});
    }
  }

  /// Fills `origin` and `elements`. Integers, booleans, batch statistics and what asks for it are
  /// constants to the gradient.
  void markDependants(ModelOp model, ArrayRef<Operation *> forward) {
    origin.clear();
    elements.clear();
    gradients.clear();
    SymbolTable symbols(model);
    for (Operation *op : forward) {
      if (op->hasTrait<ConstantToGradient>())
        continue;
      auto read = dyn_cast<ReadOp>(op);
      if (read && !isTrained(symbols.lookup<VariableOp>(read.getVariable())))
        continue;
      for (Value operand : op->getOperands())
        if (!read)
          read = origin.lookup(operand);
      if (!read)
        continue;
      for (OpResult result : op->getResults())
        if (isa<FloatType>(tensorType(result).getElementType()) &&
            !(isa<BatchNormOp, GroupNormOp>(op) && result.getResultNumber() != 0))
          origin[result] = read;
      markElements(op);
    }
  }

  /// An elementwise function of a parameter has the gradient's elements where the parameter has
  /// them.
  void markElements(Operation *op) {
    auto parameter = dyn_cast<ReadOp>(op);
    if (op->hasTrait<Elementwise>())
      for (Value operand : fullOperands(op))
        if (!parameter)
          parameter = elements.lookup(operand);
    if (parameter)
      elements[op->getResult(0)] = parameter;
  }

  /// Sums of bf16 are formed in f32.
  void accumulate(OpBuilder &builder, Value value, Value gradient) {
    Value &sum = gradients[value];
    Type wide = sumType(tensorType(gradient)).getElementType();
    sum = sum ? AddOp::create(builder, gradient.getLoc(), castTo(builder, sum.getLoc(), sum, wide),
                              castTo(builder, gradient.getLoc(), gradient, wide))
              : gradient;
  }

  /// The gradient of a result, rounded once to the result's type if it is wider. A cast takes it as
  /// it is: what comes before it may be wide as well.
  Value gradientOf(OpBuilder &builder, OpResult result) {
    Value gradient = gradients.lookup(result);
    if (!gradient || isa<CastOp>(result.getOwner()))
      return gradient;
    return castTo(builder, gradient.getLoc(), gradient, tensorType(result).getElementType());
  }

  /// d loss / d sum = weight / count; the count is a constant to the gradient. In f16 all of it is
  /// scaled.
  void seedLosses(OpBuilder &builder, ModelOp model, ProgramOp train) {
    for (auto loss : llvm::make_early_inc_range(train.getBody().getOps<LossOp>())) {
      if (!origin.contains(loss.getSum()))
        continue;
      stamp.role = {Phase::Backward, LayerKind::Loss};
      Location loc = loss.getLoc();
      auto type = tensorType(loss.getSum());
      double weight = loss.getWeight().convertToDouble();
      std::optional<double> count = splatValue(loss.getCount());
      Value seed = splat(builder, loc, type, count ? weight / *count : weight);
      if (!count)
        seed = DivOp::create(builder, loc, seed, loss.getCount());
      if (LossScale::isNeeded(model))
        seed = MulOp::create(builder, loc, seed, LossScale::read(builder, loc, model));
      accumulate(builder, loss.getSum(), seed);
    }
  }

  /// Adds the op's contributions to the gradients of its operands.
  LogicalResult propagate(OpBuilder &builder, Operation *op) {
    stamp.role = {Phase::Backward, roleOf(op).kind};
    SmallVector<Value> resultGradients = llvm::map_to_vector(
        op->getResults(), [&](OpResult result) { return gradientOf(builder, result); });
    if (isa<ReadOp>(op) || llvm::none_of(resultGradients, [](Value v) { return bool(v); }))
      return success();
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    SmallVector<bool> wanted = llvm::map_to_vector(
        op->getOperands(), [&](Value operand) { return origin.contains(operand); });
    SmallVector<Value> operandGradients(op->getNumOperands());
    if (differentiable)
      differentiable.buildGradient(builder, resultGradients, wanted, operandGradients);
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      if (!wanted[i])
        continue;
      if (!operandGradients[i])
        return reportMissingRule(op, i, bool(differentiable));
      if (ReadOp parameter = elements.lookup(operand))
        markGradient(parameter, operandGradients[i].getDefiningOp());
      accumulate(builder, operand, operandGradients[i]);
    }
    return success();
  }

  /// Notes of which parameter an op computes the gradient, or a part of it.
  static void markGradient(ReadOp parameter, Operation *op) {
    Role role = roleOf(op);
    if (role.phase != Phase::Backward) // handed through from the forward pass
      return;
    role.variable = parameter.getVariableAttr();
    setRole(op, role);
  }

  LogicalResult reportMissingRule(Operation *op, unsigned operand, bool differentiable) {
    InFlightDiagnostic error = op->emitOpError("is not differentiable");
    if (differentiable)
      error << " in operand " << operand;
    return error << ", but the loss depends on parameter @"
                 << origin.lookup(op->getOperand(operand)).getVariable() << " through it";
  }

  /// One nn.gradient per parameter, in the order of their declaration.
  void emitGradients(OpBuilder &builder, ModelOp model, ArrayRef<Operation *> forward) {
    llvm::StringMap<Value> sums;
    for (Operation *op : forward) {
      auto read = dyn_cast<ReadOp>(op);
      Value gradient = read ? gradients.lookup(read.getValue()) : Value();
      if (!gradient)
        continue;
      Value &sum = sums[read.getVariable()];
      stamp.role = {Phase::Backward, LayerKind::Other, read.getVariableAttr()};
      sum = sum ? AddOp::create(builder, read.getLoc(), sum, gradient) : gradient;
    }
    for (auto variable : model.getBody().getOps<VariableOp>()) {
      if (Value sum = sums.lookup(variable.getSymName()))
        GradientOp::create(builder, sum.getLoc(), variable.getSymName(), sum);
      else if (isTrained(variable))
        variable.emitWarning("parameter @")
            << variable.getSymName() << " gets no gradient: no loss depends on it";
    }
  }

  RoleStamp stamp;
  ParameterPatterns frozen;
  llvm::DenseMap<Value, ReadOp> origin;   // value -> a trained parameter that it depends on
  llvm::DenseMap<Value, ReadOp> elements; // value -> the parameter that it is, elementwise
  llvm::DenseMap<Value, Value> gradients; // value -> sum of the contributions so far
};
} // namespace
